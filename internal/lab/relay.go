package lab

// Packets that are changed or delayed. Kernels without netem can do neither, so the kernel
// passes the packets to this process (netfilter queue) and gets them back. relay_linux.go
// exchanges them with the kernel.

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"time"
)

// Relay describes what happens to packets that arrive at a host on a rail.
type Relay struct {
	// Share is the probability, 0 to 1, that a packet is affected.
	Share float64
	// Corrupt flips a bit of the packet. Half of the UDP packets get a new checksum, so
	// that the receiver sees the changed data; the kernel drops the others, and all TCP
	// packets, which then count as lost.
	Corrupt bool
	// Delay holds a packet back for up to this time. Later packets overtake it.
	Delay time.Duration
	// Seed selects bits and delays. Which packets are affected is the kernel's choice.
	Seed uint64
}

// Relay affects packets that arrive at a host on a rail until the returned function is
// called, which ends the relay and delivers what it holds. There may be one for each rail of
// a host. If this process dies, packets pass as before.
func (l *Lab) Relay(host string, rail int, r Relay) (stop func() error, err error) {
	l.Addr(host, rail)
	if err := checkLoss(r.Share); err != nil {
		return nil, err
	}
	if err := tool("iptables", "iptables"); err != nil {
		return nil, err
	}
	end, err := startRelay(host, rail, r)
	if err != nil {
		return nil, err
	}
	rule := append(sampleRule(rail, r.Share), "-j", "NFQUEUE", "--queue-num", strconv.Itoa(rail), "--queue-bypass")
	set := func(on bool) error {
		if err := l.segments(host, rail, !on); err != nil {
			return err
		}
		return setRule(host, "mangle", "INPUT", "relay-"+device(rail), rule, on)
	}
	if err := set(true); err != nil {
		end()
		return nil, err
	}
	return func() error {
		err := set(false)
		end()
		return err
	}, nil
}

// corrupt flips a bit behind the IP header of a packet. It returns whether the receiver will
// see the change.
func corrupt(packet []byte, random *rand.Rand) bool {
	const udp, udpHeader = 17, 8
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return false
	}
	head := 4 * int(packet[0]&15)
	data := head
	if packet[9] == udp {
		data += udpHeader // a wrong port would be a loss
	}
	if len(packet) <= data {
		return false
	}
	packet[data+random.IntN(len(packet)-data)] ^= 1 << random.IntN(8)
	if packet[9] != udp || random.IntN(2) == 0 {
		return false
	}
	sum := packet[head+6 : head+8]
	clear(sum)
	binary.BigEndian.PutUint16(sum, udpChecksum(packet, head))
	return true
}

// udpChecksum returns the UDP checksum of a packet in which it is zero.
func udpChecksum(packet []byte, head int) uint16 {
	const udp = 17
	sum := uint32(udp) + uint32(len(packet)-head)
	add := func(b []byte) {
		for ; len(b) > 1; b = b[2:] {
			sum += uint32(b[0])<<8 | uint32(b[1])
		}
		if len(b) > 0 {
			sum += uint32(b[0]) << 8
		}
	}
	add(packet[12:20])
	add(packet[head:])
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	if sum == 0xffff {
		return 0xffff // 0 means that there is none
	}
	return ^uint16(sum)
}
