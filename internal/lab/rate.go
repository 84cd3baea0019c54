package lab

// The speed of cables. Both ends of a cable get a token bucket filter of the kernel (tbf):
// the host's end limits what the host sends, the switch port limits what it receives from
// all others together, as with a real cable and switch.

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	// burstTime is how long a cable may run unlimited after it was idle or its timer was
	// late: the bucket holds the data of that time. With a smaller value TCP does not
	// reach the rate on a busy machine; with a larger one a single message would be
	// faster than the cable.
	burstTime = 2e-3
	// switchQueueTime is the queue of a switch port, as a time at the rate of the cable.
	// Packets beyond it are lost, as in a switch with many senders to one receiver.
	switchQueueTime = 8e-3
	minSwitchQueue  = 64 << 10
	// hostQueue is the queue of a host's end. It is larger than the socket buffers, so
	// senders block and no packet is lost.
	hostQueue = 16 << 20
)

// Rate sets the speed of a host's cable on a rail in each direction, such as "1gbit"; ""
// removes the limit. If others together send faster than that to the host, packets are lost
// in the switch; the host itself blocks.
func (l *Lab) Rate(host string, rail int, rate string) error {
	rails := l.rails(host, rail)
	if err := tool("tc", "iproute2"); err != nil {
		return err
	}
	var bits int64
	if rate != "" {
		var err error
		if bits, err = ParseRate(rate); err != nil {
			return err
		}
	}
	for _, r := range rails {
		for _, end := range []struct {
			namespace, device string
			queue             int64
		}{
			{host, device(r), hostQueue + l.bucket(bits)},
			{l.switchName(), l.port(host, r), l.switchQueue(bits)},
		} {
			if err := limit(end.namespace, end.device, bits, l.bucket(bits), end.queue); err != nil {
				return err
			}
		}
	}
	return nil
}

// switchQueue returns the length of the queue of a switch port in bytes. The default has
// room for the bucket too.
func (l *Lab) switchQueue(bits int64) int64 {
	if l.cfg.Queue > 0 {
		return l.cfg.Queue
	}
	return max(minSwitchQueue, int64(float64(bits)/8*switchQueueTime)) + l.bucket(bits)
}

// bucket returns the size of the bucket in bytes, at least a few packets.
func (l *Lab) bucket(bits int64) int64 {
	return max(int64(float64(bits)/8*burstTime), int64(4*l.cfg.MTU))
}

func limit(namespace, device string, bits, bucket, queue int64) error {
	if bits == 0 {
		// "Error: Cannot delete qdisc with handle of zero" if there was no limit.
		err := command("", "tc", "-n", namespace, "qdisc", "del", "dev", device, "root")
		if err != nil && (strings.Contains(err.Error(), "handle of zero") || strings.Contains(err.Error(), "No such file")) {
			return nil
		}
		return err
	}
	return command("", "tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf",
		"rate", strconv.FormatInt(bits, 10)+"bit",
		"burst", strconv.FormatInt(bucket, 10),
		"limit", strconv.FormatInt(queue, 10))
}

// units are the units of a rate, the largest first.
var units = []struct {
	name string
	bits float64
}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

// ParseRate parses a rate such as 1gbit, 2.5gbit or 100mbit and returns bits per second.
func ParseRate(rate string) (bits int64, err error) {
	for _, u := range units {
		number, found := strings.CutSuffix(strings.ToLower(strings.TrimSpace(rate)), u.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		const least, most = 1e5, 4e11
		if b := n * u.bits; err == nil && b >= least && b <= most {
			return int64(b), nil
		}
		break
	}
	return 0, fmt.Errorf("lab: rate %q: use a rate such as 10mbit or 2.5gbit, from 100kbit to 400gbit", rate)
}

// FormatRate formats bits per second in the syntax of ParseRate.
func FormatRate(bits int64) string {
	for _, u := range units {
		if float64(bits) >= u.bits {
			return strconv.FormatFloat(float64(bits)/u.bits, 'f', -1, 64) + u.name
		}
	}
	return "0bit"
}
