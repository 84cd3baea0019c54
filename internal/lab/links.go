package lab

// Fault injection on cables and hosts. All changes are made at the host's own end or at its
// port of the switch, so that they affect only that host.

import (
	"fmt"
	"strconv"
	"strings"
)

// EveryRail selects all rails of a host instead of one.
const EveryRail = -1

// rails returns the rails that a number selects. Like Addr it panics if there is none.
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

// Link unplugs the cable of a host on a rail, or plugs it in again. The host sees the loss
// of the carrier.
func (l *Lab) Link(host string, rail int, up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	return l.setPorts(host, rail, func(int) string { return state })
}

// Cut disconnects the port of a host on a rail in the switch. The host is not notified: its
// packets, and packets to it, are lost.
func (l *Lab) Cut(host string, rail int) error {
	return l.setPorts(host, rail, func(int) string { return "nomaster" })
}

// Mend reverts Cut and Link: the host is connected again.
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

// Loss drops packets that arrive at a host on a rail, with a probability from 0 to 1. While
// there is loss, the switch splits data for that host into packets of the MTU, so that
// single packets are lost, as on a real cable, and not a whole segment of the sender's
// offload.
func (l *Lab) Loss(host string, rail int, probability float64) error {
	return l.sample(host, rail, probability, func(r int) error {
		return setRule(host, "filter", "INPUT", lossChain(r), append(sampleRule(r, probability), "-j", "DROP"), probability > 0)
	})
}

// sample sets what happens to a share of the packets that arrive at a host. Where there is
// one, the switch sends packets of at most the MTU.
func (l *Lab) sample(host string, rail int, probability float64, set func(rail int) error) error {
	rails := l.rails(host, rail)
	if err := checkLoss(probability); err != nil {
		return err
	}
	if err := tool("iptables", "iptables"); err != nil {
		return err
	}
	for _, r := range rails {
		if err := l.segments(host, r, probability == 0); err != nil {
			return err
		}
		if err := set(r); err != nil {
			return err
		}
	}
	return nil
}

// sampleRule returns the part of a rule that selects packets on a rail with a probability.
func sampleRule(rail int, probability float64) []string {
	return []string{"-i", device(rail), "-m", "statistic", "--mode", "random", "--probability", strconv.FormatFloat(probability, 'f', 9, 64)}
}

func checkLoss(probability float64) error {
	if !(probability >= 0 && probability <= 1) {
		return fmt.Errorf("lab: loss %v: use a probability from 0 to 1", probability)
	}
	return nil
}

// lossChain returns the name of the iptables chain for packets that arrive on a rail. It
// has one rule while there is loss, and none otherwise.
func lossChain(rail int) string { return lossPrefix + strconv.Itoa(rail) }

const lossPrefix = "loss-eth"

// anySegments does not limit the segments of a packet, which has at most 64 KB.
const anySegments = 65535

func segments(large bool) int {
	if large {
		return anySegments
	}
	return 1
}

// offload sets how many segments of the MTU an interface accepts in one packet; the kernel
// splits larger ones.
func offload(namespace, device string, segments int) error {
	return command("", "ip", "-n", namespace, "link", "set", device, "gso_max_segs", strconv.Itoa(segments))
}

// Kill kills every process of a host. The kernel closes their connections, so that peers
// notice at once. To simulate the loss of power, call Cut first.
func (l *Lab) Kill(host string) error {
	l.Addr(host, 0)
	return killAll(host)
}

// Processes returns the IDs of the processes on a host.
func (l *Lab) Processes(host string) []int {
	l.Addr(host, 0)
	return processes(host)
}
