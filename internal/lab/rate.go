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
	// The bucket of a cable holds what it may send at once after it was idle, or after the
	// kernel's timer was late: bucketPackets packets, or the data of lateTime if that is
	// more. A larger bucket makes a single message faster than the cable: one of 2 ms
	// carried 64 KB at 1 Gbit/s in half of the time, and 1 MB in 6.8 ms instead of 8.8.
	//
	// With a smaller one TCP misses the rate, of which headers take 4 %. Measured on two
	// cores with other processes on them: at 1 Gbit/s 2 packets carried 89 to 92 % of the rate,
	// 4 packets 92 to 94 %, 12 packets 95 %, as did 2 ms. At 10 Gbit/s 16 packets carried
	// 30 %, 0.1 to 0.4 ms 87 %, and 2 ms 93 %.
	bucketPackets = 12
	lateTime      = 1e-4
	etherHeader   = 14
	// packetShare is the share of the bucket that a packet of a host may fill. The filter
	// splits what is larger than the bucket into packets of the MTU, each of which wakes
	// the receiver: at 1 Gbit/s that took 60 % of a core instead of 5 %. A packet as large
	// as the bucket has to wait for a full one, in which a late timer cannot catch up: 92
	// instead of 95 % of the rate. With half of it the receiver takes 13 to 20 % of a core.
	packetShare = 0.5
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
		if err := offload(host, device(r), l.largest(bits)); err != nil {
			return err
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

// bucket returns the size of the bucket in bytes.
func (l *Lab) bucket(bits int64) int64 {
	return max(int64(float64(bits)/8*lateTime), bucketPackets*l.packet())
}

// packet returns the length of a packet of the MTU.
func (l *Lab) packet() int64 { return int64(l.cfg.MTU) + etherHeader }

// largest returns how many segments a packet of a host may have.
func (l *Lab) largest(bits int64) int {
	if bits == 0 {
		return anySegments
	}
	return max(1, int(packetShare*float64(l.bucket(bits)/l.packet())))
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
