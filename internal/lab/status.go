package lab

// What a lab is like now, read from the kernel: the ports of the switch report what
// is plugged in and connected, the token buckets how fast, the rules of each host
// how much is lost.

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Status is a lab as it is now.
type Status struct {
	Name  string       `json:"name"`
	MTU   int          `json:"mtu"`
	Hosts []HostStatus `json:"hosts"`
}

// HostStatus is one of its hosts.
type HostStatus struct {
	Name string `json:"name"`
	// Processes are the numbers of those that run there.
	Processes []int `json:"processes"`
	// Links are its cables, in the order of rails.
	Links []LinkStatus `json:"links"`
}

// LinkStatus is the cable of a host on a rail.
type LinkStatus struct {
	Addr string `json:"addr"`
	// Unplugged and Cut are what Link and Cut have done. Both can be.
	Unplugged bool `json:"unplugged,omitempty"`
	Cut       bool `json:"cut,omitempty"`
	// Rate is in bits per second; 0: not limited.
	Rate int64 `json:"rate,omitempty"`
	// Loss is a probability.
	Loss float64 `json:"loss,omitempty"`
}

// Status looks at all hosts.
func (l *Lab) Status() (*Status, error) {
	s := &Status{Name: l.cfg.Name, MTU: l.cfg.MTU}
	ports, err := l.switchLinks()
	if err != nil {
		return nil, err
	}
	for _, host := range l.hosts {
		h := HostStatus{Name: host, Processes: processes(host)}
		rates, err := ratesOf(host)
		if err != nil {
			return nil, err
		}
		losses, err := lossesOf(host)
		if err != nil {
			return nil, err
		}
		for r := range l.cfg.Rails {
			k := LinkStatus{Addr: l.Addr(host, r), Unplugged: true, Cut: true, Rate: rates[device(r)], Loss: losses[r]}
			if i := slices.IndexFunc(ports, func(p link) bool { return p.Name == l.port(host, r) }); i >= 0 {
				k.Unplugged = !slices.Contains(ports[i].Flags, "UP")
				k.Cut = ports[i].Master != bridge(r)
			}
			h.Links = append(h.Links, k)
		}
		s.Hosts = append(s.Hosts, h)
	}
	return s, nil
}

// ratesOf reads what the interfaces of a host may send, in bits per second.
func ratesOf(host string) (map[string]int64, error) {
	if _, err := exec.LookPath("tc"); err != nil {
		return nil, nil // nobody can have set one
	}
	answer, err := query("", "tc", "-json", "-n", host, "qdisc", "show")
	if err != nil {
		return nil, err
	}
	return parseRates(answer)
}

func parseRates(text []byte) (map[string]int64, error) {
	var queues []struct {
		Kind    string `json:"kind"`
		Device  string `json:"dev"`
		Options struct {
			Rate int64 `json:"rate"` // bytes
		} `json:"options"`
	}
	if err := json.Unmarshal(text, &queues); err != nil {
		return nil, fmt.Errorf("lab: what tc tells about rates: %w", err)
	}
	rates := map[string]int64{}
	for _, q := range queues {
		if q.Kind == "tbf" {
			rates[q.Device] = 8 * q.Options.Rate
		}
	}
	return rates, nil
}

// lossesOf reads the probabilities of loss of a host, by rail.
func lossesOf(host string) (map[int]float64, error) {
	if _, err := exec.LookPath("iptables"); err != nil {
		return nil, nil // nobody can have set one
	}
	answer, err := query("", "ip", "netns", "exec", host, "iptables", "-w", "-S")
	if err != nil {
		return nil, err
	}
	return parseLosses(string(answer)), nil
}

// parseLosses reads rules such as
//
//	-A loss-eth0 -m statistic --mode random --probability 0.04999999981 -j DROP
//
// The kernel keeps a probability in 31 bits, so it is rounded.
func parseLosses(rules string) map[int]float64 {
	losses := map[int]float64{}
	for line := range strings.Lines(rules) {
		words := strings.Fields(line)
		at := slices.Index(words, "--probability")
		if len(words) < 2 || words[0] != "-A" || at < 0 || at+1 == len(words) {
			continue
		}
		rail, err := strconv.Atoi(strings.TrimPrefix(words[1], lossPrefix))
		if err != nil {
			continue
		}
		if p, err := strconv.ParseFloat(words[at+1], 64); err == nil {
			losses[rail], _ = strconv.ParseFloat(strconv.FormatFloat(p, 'f', 6, 64), 64)
		}
	}
	return losses
}
