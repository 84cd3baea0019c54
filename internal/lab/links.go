package lab

// What happens to cables and hosts. All of it is done on the host's own end or on
// the port of the switch, so that one host's trouble is its own.

import (
	"fmt"
	"strconv"
	"strings"
)

// EveryRail, in place of the number of a rail, means all rails of the host.
const EveryRail = -1

// rails are those that a number means. Like Addr it panics if there is none.
func (l *Lab) rails(host string, rail int) []int {
	if rail != EveryRail {
		l.Addr(host, rail)
		return []int{rail}
	}
	all := make([]int, l.cfg.Rails)
	for r := range all {
		l.Addr(host, r)
		all[r] = r
	}
	return all
}

// Link pulls the cable of a host on a rail, or plugs it in again. The host sees
// that the carrier is gone.
func (l *Lab) Link(host string, rail int, up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	return l.setPorts(host, rail, func(int) string { return state })
}

// Cut makes the switch forget a host on a rail. The host sees nothing: packets
// from it and to it just do not arrive.
func (l *Lab) Cut(host string, rail int) error {
	return l.setPorts(host, rail, func(int) string { return "nomaster" })
}

// Mend undoes Cut, and Link too: the host is connected again.
func (l *Lab) Mend(host string, rail int) error {
	return l.setPorts(host, rail, func(r int) string { return "master " + bridge(r) + " up" })
}

func (l *Lab) setPorts(host string, rail int, change func(rail int) string) error {
	var batch strings.Builder
	for _, r := range l.rails(host, rail) {
		fmt.Fprintf(&batch, "link set %s %s\n", l.port(host, r), change(r))
	}
	return l.ip(l.switchName(), batch.String())
}

// Loss drops packets that arrive at a host on a rail, with a probability from 0
// to 1. While there is loss the switch cuts what it passes on to that host into
// packets of the MTU, so that what is lost is single packets, as on a real cable,
// and not all that the sender has handed to its interface at once.
func (l *Lab) Loss(host string, rail int, probability float64) error {
	rails := l.rails(host, rail)
	if err := checkLoss(probability); err != nil {
		return err
	}
	if err := tool("iptables", "iptables"); err != nil {
		return err
	}
	for _, r := range rails {
		if err := offload(l.switchName(), l.port(host, r), probability == 0); err != nil {
			return err
		}
		if err := drop(host, r, probability); err != nil {
			return err
		}
	}
	return nil
}

func checkLoss(probability float64) error {
	if !(probability >= 0 && probability <= 1) {
		return fmt.Errorf("lab: loss %v: use a probability from 0 to 1", probability)
	}
	return nil
}

// lossChain is the list of rules for what arrives on a rail. It has one rule
// while there is loss, none before and after.
func lossChain(rail int) string { return lossPrefix + strconv.Itoa(rail) }

const lossPrefix = "loss-eth"

func drop(host string, rail int, probability float64) error {
	table := func(args ...string) error {
		return command("", "ip", append([]string{"netns", "exec", host, "iptables", "-w"}, args...)...)
	}
	chain := lossChain(rail)
	err := table("-N", chain)
	switch {
	case err == nil:
		err = table("-A", "INPUT", "-i", device(rail), "-j", chain)
	case strings.Contains(err.Error(), "exists"):
		err = table("-F", chain)
	}
	if err != nil || probability == 0 {
		return err
	}
	return table("-A", chain, "-m", "statistic", "--mode", "random", "--probability", strconv.FormatFloat(probability, 'f', 9, 64), "-j", "DROP")
}

// Offload lets a host pass packets of up to 64 KB to the switch and take such
// packets from it (the default), or cuts them to the MTU in both directions. That
// takes processor time, as it would without an interface that does it.
func (l *Lab) Offload(host string, rail int, on bool) error {
	for _, r := range l.rails(host, rail) {
		if err := offload(host, device(r), on); err != nil {
			return err
		}
		if err := offload(l.switchName(), l.port(host, r), on); err != nil {
			return err
		}
	}
	return nil
}

// offload says how many packets of the MTU an interface takes in one: the kernel
// cuts larger ones before it hands them over.
func offload(namespace, device string, on bool) error {
	segments := "1"
	if on {
		segments = "65535"
	}
	return command("", "ip", "-n", namespace, "link", "set", device, "gso_max_segs", segments)
}

// Kill kills every process of a host. Its kernel lives on and closes their
// connections, so that others notice at once; a host that loses its power is
// first Cut and then killed.
func (l *Lab) Kill(host string) error {
	l.Addr(host, 0)
	return killAll(host)
}
