package lab

// The current state of a lab, read from the kernel: the switch ports show which cables are
// plugged in and connected, the token buckets their speed, and the iptables rules of each
// host the loss.

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Status is the current state of a lab.
type Status struct {
	Name  string       `json:"name"`
	MTU   int          `json:"mtu"`
	Hosts []HostStatus `json:"hosts"`
}

// HostStatus is the state of a host.
type HostStatus struct {
	Name string `json:"name"`
	// Processes are the IDs of the processes on the host.
	Processes []int `json:"processes"`
	// Links are its cables, in the order of rails.
	Links []LinkStatus `json:"links"`
}

// LinkStatus is the state of a host's cable on a rail.
type LinkStatus struct {
	Addr string `json:"addr"`
	// Unplugged and Cut are the effects of Link and Cut. Both can be true.
	Unplugged bool `json:"unplugged,omitempty"`
	Cut       bool `json:"cut,omitempty"`
	// Rate is in bits per second; 0: not limited.
	Rate int64 `json:"rate,omitempty"`
	// Loss is a probability.
	Loss float64 `json:"loss,omitempty"`
}

// Status returns the state of all hosts.
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

// ratesOf returns the rates of a host's interfaces in bits per second.
func ratesOf(host string) (map[string]int64, error) {
	if _, err := exec.LookPath("tc"); err != nil {
		return nil, nil // without tc no rate can have been set
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
		return nil, fmt.Errorf("lab: decode the output of tc: %w", err)
	}
	rates := map[string]int64{}
	for _, q := range queues {
		if q.Kind == "tbf" {
			rates[q.Device] = 8 * q.Options.Rate
		}
	}
	return rates, nil
}

// lossesOf returns the loss probabilities of a host by rail.
func lossesOf(host string) (map[int]float64, error) {
	if _, err := exec.LookPath("iptables"); err != nil {
		return nil, nil // without iptables no loss can have been set
	}
	answer, err := query("", "ip", "netns", "exec", host, "iptables", "-w", "-S")
	if err != nil {
		return nil, err
	}
	return parseLosses(string(answer)), nil
}

// parseLosses parses rules such as
//
//	-A loss-eth0 -i eth0 -m statistic --mode random --probability 0.04999999981 -j DROP
//
// The kernel stores a probability in 31 bits, so it is rounded.
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
