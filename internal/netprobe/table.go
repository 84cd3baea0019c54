package netprobe

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Summary describes in one line what was selected.
func Summary(list []Candidate) string {
	var words []string
	for _, c := range list {
		if c.Taken {
			words = append(words, fmt.Sprintf("%s (%v%s)", c.Name, c.Address, c.speed()))
		}
	}
	switch len(words) {
	case 0:
		return "no rail: no interface leads to other hosts"
	case 1:
		return "1 rail: " + words[0]
	}
	return fmt.Sprintf("%d rails: %s", len(words), strings.Join(words, ", "))
}

func (c *Candidate) speed() string {
	switch rate := cmp.Or(c.Rate(), c.Speed); {
	case rate == 0:
		return ""
	case rate%1000 == 0:
		return fmt.Sprintf(", %d Gbit/s", rate/1000)
	default:
		return fmt.Sprintf(", %d Mbit/s", rate)
	}
}

// Table prints each interface with its rating.
func Table(w io.Writer, list []Candidate) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, " \tinterface\taddress\tspeed\twhy")
	for _, c := range list {
		mark, address, speed := " ", "-", "-"
		if c.Taken {
			mark = "*"
		}
		if c.Address.IsValid() {
			address = c.Address.String()
		}
		if s := c.speed(); s != "" {
			speed = strings.TrimPrefix(s, ", ")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", mark, c.Name, address, speed, c.Why)
	}
	return t.Flush()
}
