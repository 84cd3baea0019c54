package capture

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

// From frames to byte streams: extract the TCP segments of a recording, sort them by
// connection, and order each direction. A recording of a real network contains other
// protocols, pure acknowledgements, retransmitted segments, and segments that overtook
// each other.

// Conversation is one TCP connection of a capture: what each side sent, in order and once,
// in the segments in which it arrived.
type Conversation struct {
	Client, Server netip.AddrPort
	Segments       []Segment
}

// Bytes returns everything that a side sent.
func (c *Conversation) Bytes(from Side) []byte {
	var all []byte
	for _, s := range c.Segments {
		if s.From == from {
			all = append(all, s.Data...)
		}
	}
	return all
}

// Conversations returns the connections that a capture shows from their first segment on,
// in the order in which they began. It omits connections without data, such as refused
// ones. A direction with a gap is an error.
func Conversations(frames []Frame) ([]Conversation, error) {
	var open []*connection
	for i, f := range frames {
		p, ok, err := parseTCP(f.Data)
		if err != nil {
			return nil, fmt.Errorf("capture: frame %d: %w", i+1, err)
		}
		if !ok {
			continue
		}
		if p.flags&flagSYN != 0 && p.flags&flagACK == 0 {
			open = append(open, &connection{Conversation: Conversation{Client: p.from, Server: p.to}})
		}
		if c, side := find(open, p); c != nil {
			c.take(side, p)
		}
	}
	var done []Conversation
	for _, c := range open {
		for side, d := range c.way {
			if len(d.early) > 0 {
				return nil, fmt.Errorf("capture: connection %v to %v: bytes from the %v are missing before sequence number %d: the recording has a gap", c.Client, c.Server, Side(side), d.early[0].seq)
			}
		}
		if len(c.Segments) > 0 {
			done = append(done, c.Conversation)
		}
	}
	return done, nil
}

// packet holds the relevant fields of a TCP segment.
type packet struct {
	from, to netip.AddrPort
	seq      uint32
	flags    byte
	data     []byte
}

// parseTCP parses a frame; ok is false if it is not TCP over IPv4.
func parseTCP(b []byte) (p packet, ok bool, err error) {
	be := binary.BigEndian
	if len(b) < etherHead+ipHead || be.Uint16(b[12:]) != etherIPv4 {
		return p, false, nil
	}
	ip := b[etherHead:]
	head, total := int(ip[0]&15)*4, int(be.Uint16(ip[2:]))
	if ip[9] != protocolTCP {
		return p, false, nil
	}
	if head < ipHead || total < head || total > len(ip) {
		return p, false, fmt.Errorf("an IPv4 header of %d bytes in a packet of %d does not fit into %d", head, total, len(ip))
	}
	if be.Uint16(ip[6:])&0x3fff != 0 {
		return p, false, fmt.Errorf("is a fragment of an IPv4 packet: record where packets are not fragmented")
	}
	tcp := ip[head:total] // the rest is padding of the link
	if len(tcp) < tcpHead {
		return p, false, fmt.Errorf("%d bytes are not a TCP header", len(tcp))
	}
	offset := int(tcp[12]>>4) * 4
	if offset < tcpHead || offset > len(tcp) {
		return p, false, fmt.Errorf("a TCP header of %d bytes does not fit into %d", offset, len(tcp))
	}
	address := func(at int, port []byte) netip.AddrPort {
		a, _ := netip.AddrFromSlice(ip[at : at+4])
		return netip.AddrPortFrom(a, be.Uint16(port))
	}
	return packet{
		from: address(12, tcp[0:]), to: address(16, tcp[2:]),
		seq: be.Uint32(tcp[4:]), flags: tcp[13], data: tcp[offset:],
	}, true, nil
}

// connection is a conversation being assembled.
type connection struct {
	Conversation
	way [2]direction
}

// direction is the reassembly state of one side.
type direction struct {
	begun bool
	next  uint32   // the next expected sequence number
	early []packet // arrived out of order, sorted
}

// find returns the connection of a packet, the most recent one if the ports were reused,
// and its sender.
func find(open []*connection, p packet) (*connection, Side) {
	for _, c := range slices.Backward(open) {
		switch {
		case p.from == c.Client && p.to == c.Server:
			return c, Client
		case p.from == c.Server && p.to == c.Client:
			return c, Server
		}
	}
	return nil, 0
}

// take appends the data of a packet, and of packets that waited for it.
func (c *connection) take(from Side, p packet) {
	d := &c.way[from]
	if p.flags&flagSYN != 0 {
		d.begun, d.next = true, p.seq+1 // RFC 9293 3.4: the SYN counts as one
		return
	}
	if !d.begun || len(p.data) == 0 || p.flags&flagRST != 0 {
		return
	}
	d.early = append(d.early, p)
	slices.SortStableFunc(d.early, func(a, b packet) int { return cmp.Compare(d.distance(a), d.distance(b)) })
	for len(d.early) > 0 && d.distance(d.early[0]) <= 0 {
		first := d.early[0]
		d.early = d.early[1:]
		known := int(-d.distance(first)) // bytes of it that arrived before
		if known >= len(first.data) {
			continue // a complete retransmission
		}
		c.Segments = append(c.Segments, Segment{from, first.data[known:]})
		d.next += uint32(len(first.data) - known)
	}
}

// distance returns the distance of a packet from the expected byte; sequence numbers wrap.
func (d *direction) distance(p packet) int32 { return int32(p.seq - d.next) }
