package capture

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// A synthetic conversation: handshake, the given segments, end. Sequence numbers,
// acknowledgements and checksums are correct, so that a dissector can only find fault with
// the payload.

// Side is an end of a conversation.
type Side int

const (
	Client Side = iota // opened the connection
	Server
)

func (s Side) String() string {
	if s == Client {
		return "client"
	}
	return "server"
}

// Segment is the payload of one TCP segment.
type Segment struct {
	From Side
	Data []byte
}

// maxPayload is what fits into an IPv4 packet after both headers.
const maxPayload = 0xffff - ipHead - tcpHead

const (
	etherHead = 14
	ipHead    = 20
	tcpHead   = 20

	etherIPv4   = 0x0800
	protocolTCP = 6

	flagFIN = 0x01
	flagSYN = 0x02
	flagRST = 0x04
	flagPSH = 0x08
	flagACK = 0x10
)

// WriteTCP writes a capture of one connection on which the segments were sent in
// this order, each as one TCP segment.
func WriteTCP(w io.Writer, segments []Segment) error {
	c := newWire()
	c.send(Client, flagSYN, nil)
	c.send(Server, flagSYN|flagACK, nil)
	c.send(Client, flagACK, nil)
	for i, s := range segments {
		if len(s.Data) > maxPayload {
			return fmt.Errorf("capture: segment %d of the conversation, from the %v, has %d bytes, an IPv4 packet holds %d: split it", i, s.From, len(s.Data), maxPayload)
		}
		c.send(s.From, flagPSH|flagACK, s.Data)
	}
	c.send(Client, flagFIN|flagACK, nil)
	c.send(Server, flagFIN|flagACK, nil)
	c.send(Client, flagACK, nil)
	return Write(w, c.frames)
}

// wire is a connection being written.
type wire struct {
	end    [2]netip.AddrPort
	next   [2]uint32 // the next sequence number of each side
	frames []Frame
}

func newWire() *wire {
	return &wire{
		end: [2]netip.AddrPort{
			netip.MustParseAddrPort("192.0.2.1:40000"), // addresses for documentation, RFC 5737
			netip.MustParseAddrPort("192.0.2.2:7174"),  // rping's port
		},
		// The server's sequence numbers wrap early in the conversation, which a reader has
		// to handle.
		next: [2]uint32{1000, 0xffffff00},
	}
}

// send appends one frame and advances the sequence number.
func (c *wire) send(from Side, flags byte, data []byte) {
	to := 1 - from
	var ack uint32
	if flags&flagACK != 0 {
		ack = c.next[to]
	}
	tcp := appendTCP(nil, c.end[from], c.end[to], c.next[from], ack, flags, data)
	frame := appendEther(nil, from, to)
	frame = appendIPv4(frame, c.end[from].Addr(), c.end[to].Addr(), uint16(len(c.frames)), len(tcp))
	frame = append(frame, tcp...)
	at := time.Unix(1_000_000_000, 0).Add(time.Duration(len(c.frames)) * time.Millisecond)
	c.frames = append(c.frames, Frame{At: at, Data: frame})
	c.next[from] += uint32(len(data))
	if flags&(flagSYN|flagFIN) != 0 {
		c.next[from]++ // RFC 9293 3.4: both count as one
	}
}

// appendEther appends the link header. The addresses are locally administered.
func appendEther(b []byte, from, to Side) []byte {
	b = append(b, 2, 0, 0, 0, 0, byte(to)+1)
	b = append(b, 2, 0, 0, 0, 0, byte(from)+1)
	return binary.BigEndian.AppendUint16(b, etherIPv4)
}

// appendIPv4 appends the header of a packet that carries n bytes (RFC 791 3.1).
func appendIPv4(b []byte, from, to netip.Addr, id uint16, n int) []byte {
	at := len(b)
	be := binary.BigEndian
	b = append(b, 0x45, 0) // version 4, five words
	b = be.AppendUint16(b, uint16(ipHead+n))
	b = be.AppendUint16(b, id)
	b = be.AppendUint16(b, 0x4000) // do not fragment
	b = append(b, 64, protocolTCP, 0, 0)
	b = append(b, from.AsSlice()...)
	b = append(b, to.AsSlice()...)
	be.PutUint16(b[at+10:], checksum(0, b[at:]))
	return b
}

// appendTCP appends header and data of a segment (RFC 9293 3.1).
func appendTCP(b []byte, from, to netip.AddrPort, seq, ack uint32, flags byte, data []byte) []byte {
	at := len(b)
	be := binary.BigEndian
	b = be.AppendUint16(b, from.Port())
	b = be.AppendUint16(b, to.Port())
	b = be.AppendUint32(b, seq)
	b = be.AppendUint32(b, ack)
	b = append(b, tcpHead/4<<4, flags)
	b = be.AppendUint16(b, 0xffff) // window
	b = append(b, 0, 0, 0, 0)      // checksum and urgent pointer
	b = append(b, data...)
	pseudo := from.Addr().AsSlice() // the checksum covers the addresses as well
	pseudo = append(pseudo, to.Addr().AsSlice()...)
	pseudo = be.AppendUint16(pseudo, protocolTCP)
	pseudo = be.AppendUint16(pseudo, uint16(len(b)-at))
	be.PutUint16(b[at+16:], checksum(sum(pseudo), b[at:]))
	return b
}

// checksum returns the Internet checksum (RFC 1071) of b, starting with a sum.
func checksum(begun uint32, b []byte) uint16 {
	s := begun + sum(b)
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}

// sum adds 16-bit words. 64 KB of them cannot overflow it.
func sum(b []byte) uint32 {
	var s uint32
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return s
}
