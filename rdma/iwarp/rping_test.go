package iwarp

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// rping, both sides of it, directly on MPA and DDP: no device, a blocking socket. It is
// the counterpart for soft-iWARP (siw_live_test.go), because it can control every step of
// the protocol, and make every kind of setup and of error.
//
// The flow: dial or accept, then rounds, each made of send and step.

// rpingPeer is one side of a connection.
type rpingPeer struct {
	conn   net.Conn
	terms  terms
	in     deframer
	out    framer
	unread []byte
	emss   int           // payload of a TCP segment
	base   func() uint64 // returns the address of the next offered buffer
	table  *ddp.Table
	stream *ddp.Stream
}

const (
	rpingOffer = 16 // address, tag and length
	rpingLimit = 30 * time.Second
)

// rpingPreferences returns the preferences of both sides except for CRC, markers and
// peer-to-peer.
func rpingPreferences(crc, markers, p2p bool) preferences {
	return preferences{crc: crc, markers: markers, p2p: p2p, ready: readyWrite, ird: 4, ord: 4}
}

// dialRping begins a connection as its initiator. pause is the time the responder is given
// before the next frame.
func dialRping(conn net.Conn, w preferences, pause time.Duration) (*rpingPeer, error) {
	p := newRpingPeer(conn)
	return p, p.dial(w, pause)
}

func (p *rpingPeer) dial(w preferences, pause time.Duration) error {
	req := w.request(nil)
	if err := p.sendStartup(&req); err != nil {
		return err
	}
	rep, err := p.readStartup(true)
	if err != nil {
		return err
	}
	if p.terms, err = w.conclude(&rep); err != nil {
		return err
	}
	p.agree()
	time.Sleep(pause)                // real time, for soft-iWARP: see siwPause
	if p.terms.ready == readyWrite { // RFC 6581 section 6: before anything else
		return p.send(p.stream.Write(1, 0, 0), nil) // any tag: it is ignored
	}
	return nil
}

// acceptRping is the responder's side.
func acceptRping(conn net.Conn, w preferences) (*rpingPeer, error) {
	p := newRpingPeer(conn)
	req, err := p.readStartup(false)
	if err != nil {
		return nil, err
	}
	rep, agreed, err := w.answer(&req, nil)
	if sent := p.sendStartup(&rep); sent != nil || err != nil {
		return nil, errors.Join(err, sent)
	}
	p.terms = agreed
	p.agree()
	if p.terms.ready == 0 {
		return p, nil
	}
	_, e, err := p.step()
	if err == nil && e.Op != ddp.Write {
		err = fmt.Errorf("the first message of a peer-to-peer connection is a %v", e.Op)
	}
	return p, err
}

func newRpingPeer(conn net.Conn) *rpingPeer {
	conn.SetDeadline(time.Now().Add(rpingLimit))
	return &rpingPeer{
		conn: conn, table: ddp.NewTable(rand.Reader, 1),
		emss: 1448, // of Ethernet, with time stamps
		base: func() uint64 { return 0x5eed_0000 },
	}
}

// agree applies the negotiated terms.
func (p *rpingPeer) agree() {
	p.in = deframer{crc: p.terms.crc, markers: p.terms.markersIn}
	p.out = framer{crc: p.terms.crc, markers: p.terms.markersOut}
	p.stream = ddp.NewStream(ddp.Config{Table: p.table, ID: 1, Buffers: p, Inbound: int(p.terms.ird), Outbound: int(p.terms.ord)})
}

// Take posts a buffer for each message.
func (p *rpingPeer) Take() (rdma.RecvWR, bool) {
	return rdma.RecvWR{Body: rdma.MemOf(make([]byte, rpingOffer))}, true
}

func (p *rpingPeer) sendStartup(s *startup) error {
	b, err := s.append(nil)
	if err != nil {
		return err
	}
	_, err = p.conn.Write(b)
	return err
}

func (p *rpingPeer) readStartup(reply bool) (startup, error) {
	for {
		s, n, err := parseStartup(p.unread, reply)
		if err != nil || n > 0 {
			p.unread = p.unread[n:]
			return s, err
		}
		if err := p.read(); err != nil {
			return s, fmt.Errorf("no startup frame: %w", err)
		}
	}
}

// read appends the available input.
func (p *rpingPeer) read() error {
	b := make([]byte, 64<<10)
	n, err := p.conn.Read(b)
	p.unread = append(p.unread, b[:n]...)
	if n > 0 {
		return nil
	}
	return err
}

// room returns the payload of a segment with a header of so many bytes.
func (p *rpingPeer) room(header int) int { return segmentFor(p.emss, p.terms.markersOut) - header }

// send cuts a message into segments and writes them.
func (p *rpingPeer) send(m ddp.Message, data []byte) error {
	for off, done := uint32(0), false; !done; {
		h, n := m.Segment(off, p.room(m.Header.Len()))
		if err := p.write(h, data[off:off+uint32(n)]); err != nil {
			return fmt.Errorf("%v: %w", h.Op, err)
		}
		off += uint32(n)
		done = h.Last
	}
	return nil
}

func (p *rpingPeer) write(h ddp.Header, payload []byte) error {
	var header [ddp.UntaggedLen]byte
	_, err := p.conn.Write(p.out.append(nil, header[:h.Put(header[:])], payload))
	return err
}

// await steps until an event of a kind has happened.
func (p *rpingPeer) await(kind ddp.EventKind) (ddp.Event, error) {
	for {
		_, e, err := p.step()
		if err != nil || e.Kind == kind {
			return e, err
		}
		if e.Kind == ddp.Terminated {
			return e, fmt.Errorf("the peer ended the stream: %w", e.Fault.Err())
		}
	}
}

// step receives one segment, places and delivers it, and sends the pending response, if
// any. A fault is reported to the peer before it is returned.
func (p *rpingPeer) step() (h ddp.Header, e ddp.Event, err error) {
	segment, n := []byte(nil), 0
	for n == 0 {
		if segment, n, _, err = p.in.next(p.unread); err != nil {
			return h, e, err
		}
		if n > 0 {
			break
		}
		if err = p.read(); err != nil {
			return h, e, err
		}
	}
	f := p.take(segment, &h, &e)
	raw := bytes.Clone(segment)
	p.unread = p.unread[n:]
	for f == ddp.NoFault && p.stream.ResponsesPending() {
		var answer ddp.Header
		var payload []byte
		if answer, payload, f = p.stream.Respond(p.room(ddp.TaggedLen)); f == ddp.NoFault {
			if err := p.write(answer, payload); err != nil {
				return h, e, err
			}
		}
	}
	if f == ddp.NoFault {
		return h, e, nil
	}
	return h, e, errors.Join(f.Err(), p.terminate(f, raw))
}

func (p *rpingPeer) take(segment []byte, h *ddp.Header, e *ddp.Event) ddp.Fault {
	k, f := h.Decode(segment, len(segment))
	if f != ddp.NoFault {
		return f
	}
	payload := segment[k:]
	target, f := p.stream.Placement(h, 0, len(payload))
	if f != ddp.NoFault {
		return f
	}
	copy(target, payload)
	return p.stream.Deliver(h, len(payload), payload, e)
}

func (p *rpingPeer) terminate(f ddp.Fault, raw []byte) error {
	m, t, ok := p.stream.Terminate(f, raw, len(raw))
	if !ok {
		return nil
	}
	b := make([]byte, t.Len())
	t.Put(b)
	return p.send(m, b)
}

// sendMessage sends an rping message.
func (p *rpingPeer) sendMessage(message [rpingOffer]byte) error {
	return p.send(p.stream.Send(ddp.Send, rpingOffer, 0), message[:])
}

// offer sends the address of a buffer to the peer, and waits until it has used it.
func (p *rpingPeer) offer(buffer []byte, access rdma.Access) error {
	base := p.base()
	tag, err := p.table.Register(ddp.Region{Mem: rdma.MemOf(buffer), Base: base, Access: access})
	if err != nil {
		return err
	}
	var message [rpingOffer]byte
	binary.BigEndian.PutUint64(message[0:], base)
	binary.BigEndian.PutUint32(message[8:], uint32(tag))
	binary.BigEndian.PutUint32(message[12:], uint32(len(buffer)))
	if err := p.sendMessage(message); err != nil {
		return err
	}
	if _, err := p.await(ddp.Received); err != nil {
		return err
	}
	p.table.Deregister(tag)
	return nil
}

// client runs the given rounds: the peer reads the line and writes it back.
func (p *rpingPeer) client(rounds, size int) error {
	for i := range rounds {
		line, back := rpingData(i, size), make([]byte, size)
		if err := p.offer(line, rdma.RemoteRead); err != nil {
			return fmt.Errorf("round %d, the peer reads: %w", i, err)
		}
		if err := p.offer(back, rdma.RemoteWrite); err != nil {
			return fmt.Errorf("round %d, the peer writes: %w", i, err)
		}
		if !bytes.Equal(line, back) {
			return fmt.Errorf("round %d: the peer wrote back %q", i, back)
		}
	}
	return nil
}

// server runs rounds until the client closes, and returns their number.
func (p *rpingPeer) server() (rounds int, err error) {
	for ; ; rounds++ {
		size, tag, base, err := p.offered()
		if errors.Is(err, io.EOF) {
			return rounds, nil
		}
		if err != nil {
			return rounds, err
		}
		data := make([]byte, size)
		m, ask, err := p.stream.Read(1, rdma.MemOf(data), tag, base)
		if err != nil {
			return rounds, err
		}
		var request [ddp.ReadRequestLen]byte
		ask.Put(request[:])
		if err := p.send(m, request[:]); err != nil {
			return rounds, err
		}
		if _, err := p.await(ddp.Fetched); err != nil {
			return rounds, fmt.Errorf("round %d, Read: %w", rounds, err)
		}
		if want := rpingData(rounds, int(size)); !bytes.Equal(data, want) {
			return rounds, fmt.Errorf("round %d: read %q, want %q", rounds, data, want)
		}
		if err := p.sendMessage([rpingOffer]byte{}); err != nil {
			return rounds, err
		}
		if size, tag, base, err = p.offered(); err != nil {
			return rounds, fmt.Errorf("round %d, where to write: %w", rounds, err)
		}
		if err := errors.Join(p.send(p.stream.Write(tag, base, size), data), p.sendMessage([rpingOffer]byte{})); err != nil {
			return rounds, err
		}
	}
}

// offered waits for the address of a buffer.
func (p *rpingPeer) offered() (size uint32, tag ddp.Tag, base uint64, err error) {
	e, err := p.await(ddp.Received)
	if err != nil {
		return 0, 0, 0, err
	}
	if e.Len != rpingOffer {
		return 0, 0, 0, fmt.Errorf("a message of %d bytes, rping sends %d", e.Len, rpingOffer)
	}
	b := e.Recv.Body.Bytes()
	return binary.BigEndian.Uint32(b[12:]), ddp.Tag(binary.BigEndian.Uint32(b[8:])), binary.BigEndian.Uint64(b), nil
}
