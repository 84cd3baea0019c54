package lab

// What happens to cables. All of it is done on the host's own end or on the
// port of the switch, so that one host's trouble is its own.

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// port is the switch's end of a host's cable.
func (l *Lab) port(host string, rail int) string {
	return "h" + strconv.Itoa(slices.Index(l.hosts, host)+1) + "r" + strconv.Itoa(rail)
}

// Link pulls the cable of a host on a rail, or plugs it in again. The host sees
// that the carrier is gone.
func (l *Lab) Link(host string, rail int, up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	return l.setPort(host, rail, state)
}

// Cut makes the switch forget a host on a rail, or know it again. The host sees
// nothing: its packets just do not arrive.
func (l *Lab) Cut(host string, rail int, cut bool) error {
	if cut {
		return l.setPort(host, rail, "nomaster")
	}
	return l.setPort(host, rail, "master", "rail"+strconv.Itoa(rail))
}

func (l *Lab) setPort(host string, rail int, change ...string) error {
	l.Addr(host, rail) // it exists
	args := append([]string{"-n", l.switchName(), "link", "set", l.port(host, rail)}, change...)
	return command("", "ip", args...)
}

// Rate limits what a host can send on a rail, such as "1gbit"; "" takes the limit
// away. The sender waits, nothing is lost.
func (l *Lab) Rate(host string, rail int, rate string) error {
	l.Addr(host, rail)
	// It fails if there was no limit yet.
	_ = command("", "tc", "-n", host, "qdisc", "del", "dev", device(rail), "root")
	if rate == "" {
		return nil
	}
	if err := command("", "tc", "-n", host, "qdisc", "add", "dev", device(rail), "root", "handle", "1:", "htb", "default", "10", "r2q", "1000"); err != nil {
		return err
	}
	// A packet may be 64 KB until the card would cut it, so bursts of several.
	return command("", "tc", "-n", host, "class", "add", "dev", device(rail), "parent", "1:", "classid", "1:10",
		"htb", "rate", rate, "burst", "512kb", "cburst", "512kb")
}

// Loss drops packets that arrive at a host on a rail, with a probability from 0
// to 1. What the sender's card would have cut into packets counts as one, unless
// the host's offloads are switched off (see Offload).
func (l *Lab) Loss(host string, rail int, probability float64) error {
	l.Addr(host, rail)
	if probability < 0 || probability > 1 {
		return fmt.Errorf("lab: loss %v: use a probability from 0 to 1", probability)
	}
	table := func(args ...string) error {
		return command("", "ip", append([]string{"netns", "exec", host, "iptables", "-w"}, args...)...)
	}
	chain := "loss-" + device(rail)
	jump := []string{"INPUT", "-i", device(rail), "-j", chain}
	err := table("-N", chain)
	switch {
	case err == nil:
		if err := table(append([]string{"-A"}, jump...)...); err != nil {
			return err
		}
	case !strings.Contains(err.Error(), "exists"):
		return err
	default:
		if err := table("-F", chain); err != nil {
			return err
		}
	}
	if probability == 0 {
		return nil
	}
	return table("-A", chain, "-m", "statistic", "--mode", "random", "--probability", strconv.FormatFloat(probability, 'f', 9, 64), "-j", "DROP")
}

// Offload lets a host pass packets of up to 64 KB to the switch and take such
// packets from it (the default), or makes it cut them to the MTU itself.
func (l *Lab) Offload(host string, rail int, on bool) error {
	l.Addr(host, rail)
	if _, err := exec.LookPath("ethtool"); err != nil {
		return errors.New("lab: there is no ethtool command (Debian package ethtool)")
	}
	state := "off"
	if on {
		state = "on"
	}
	for _, end := range [][2]string{{host, device(rail)}, {l.switchName(), l.port(host, rail)}} {
		if err := command("", "ip", "netns", "exec", end[0], "ethtool", "-K", end[1], "tso", state, "gso", state, "gro", state); err != nil {
			return err
		}
	}
	return nil
}
