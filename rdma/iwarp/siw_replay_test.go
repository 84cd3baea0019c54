package iwarp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/muster-mpi/muster/rdma/internal/capture"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Recordings of Linux's soft-iWARP, replayed through our decoder. The test checks that
// every byte is decoded, that the result is rping (its data is complete), and that our
// encoder produces the same bytes again.

// recordings lists the files of testdata/siw and their contents.
var recordings = []struct {
	file string
	p2p  bool
	size uint32             // of rping's data
	ops  map[ddp.Opcode]int // segments
}{
	{"rping", false, 64, map[ddp.Opcode]int{ddp.Send: 16, ddp.ReadRequestOp: 4, ddp.ReadResponse: 4, ddp.Write: 4}},
	{"rping_crc", false, 64, map[ddp.Opcode]int{ddp.Send: 16, ddp.ReadRequestOp: 4, ddp.ReadResponse: 4, ddp.Write: 4}},
	{"rping_p2p", true, 64, map[ddp.Opcode]int{ddp.Send: 16, ddp.ReadRequestOp: 4, ddp.ReadResponse: 4, ddp.Write: 5}},
	{"pair", false, 4000, map[ddp.Opcode]int{ddp.Send: 16, ddp.ReadRequestOp: 4, ddp.ReadResponse: 12, ddp.Write: 12}},
	{"client_p2p", true, 5000, map[ddp.Opcode]int{ddp.Send: 16, ddp.ReadRequestOp: 4, ddp.ReadResponse: 16, ddp.Write: 17}},
}

func TestRecordingsOfSiw(t *testing.T) {
	for _, rec := range recordings {
		t.Run(rec.file, func(t *testing.T) {
			talk := recording(t, rec.file)
			r := &replay{t: t, rping: rping{size: rec.size}, ops: map[ddp.Opcode]int{}}
			for _, s := range talk.Segments {
				r.receive(s.From, s.Data)
			}
			r.finish()
			if !reflect.DeepEqual(r.ops, rec.ops) {
				t.Errorf("segments %v, tshark counts %v", r.ops, rec.ops)
			}
			if got := r.terms(); got.crc != true || (got.ready == readyWrite) != rec.p2p || got.ord != 1 {
				t.Errorf("the two agreed on %+v", got)
			}
			for _, side := range []capture.Side{capture.Client, capture.Server} {
				if !bytes.Equal(r.way[side].again, talk.Bytes(side)) {
					t.Errorf("the data of the %v is encoded differently by us: %d bytes, recorded %d", side, len(r.way[side].again), len(talk.Bytes(side)))
				}
			}
		})
	}
}

// recording returns the one conversation in a file.
func recording(t *testing.T, name string) *capture.Conversation {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "siw", name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	frames, err := capture.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	conversations, err := capture.Conversations(frames)
	if err != nil {
		t.Fatal(err)
	}
	if len(conversations) != 1 {
		t.Fatalf("%s has %d conversations, want 1", name, len(conversations))
	}
	return &conversations[0]
}

// replay receives both sides of a connection.
type replay struct {
	t     *testing.T
	way   [2]direction
	ops   map[ddp.Opcode]int
	rping rping
}

// direction is one direction.
type direction struct {
	begun   bool
	startup startup
	unread  []byte // the beginning of a frame
	in      deframer
	out     framer
	again   []byte // the output of our encoder
	msn     [4]uint32
	message []byte // the current Send so far
}

// receive processes the next bytes of one side.
func (r *replay) receive(from capture.Side, data []byte) {
	r.t.Helper()
	h := &r.way[from]
	h.unread = append(h.unread, data...)
	if !h.begun && !r.begin(from) {
		return
	}
	for {
		segment, n, _, err := h.in.next(h.unread)
		if err != nil {
			r.t.Fatalf("from the %v: %v", from, err)
		}
		if n == 0 {
			return
		}
		r.segment(from, segment)
		h.unread = h.unread[n:]
	}
}

// begin parses the startup frame, once it is complete.
func (r *replay) begin(from capture.Side) bool {
	r.t.Helper()
	h := &r.way[from]
	s, n, err := parseStartup(h.unread, from == capture.Server)
	if err != nil {
		r.t.Fatalf("from the %v: %v", from, err)
	}
	if n == 0 {
		return false
	}
	h.begun, h.startup = true, s
	if h.again, err = s.append(nil); err != nil {
		r.t.Fatal(err)
	}
	h.unread = h.unread[n:]
	if from == capture.Server {
		crc := r.terms().crc
		for i := range r.way {
			r.way[i].in.crc, r.way[i].out.crc = crc, crc
		}
	}
	return true
}

// terms returns the terms that the initiator concludes from the reply.
func (r *replay) terms() terms {
	r.t.Helper()
	req, rep := &r.way[capture.Client].startup, &r.way[capture.Server].startup
	w := preferences{markers: req.markers, crc: req.crc, p2p: req.p2p, ready: req.ready, ird: req.ird, ord: req.ord}
	agreed, err := w.conclude(rep)
	if err != nil {
		r.t.Fatal(err)
	}
	return agreed
}

// segment decodes a segment, encodes it again, and passes it to the rping checker.
func (r *replay) segment(from capture.Side, segment []byte) {
	r.t.Helper()
	h := &r.way[from]
	var head ddp.Header
	n, fault := head.Decode(segment, len(segment))
	if fault != ddp.NoFault {
		r.t.Fatalf("from the %v, segment % x: %v", from, segment[:min(len(segment), ddp.UntaggedLen)], fault)
	}
	r.ops[head.Op]++
	payload := segment[n:]
	var bytes [ddp.UntaggedLen]byte
	k := head.Put(bytes[:])
	if head.Op == ddp.ReadRequestOp {
		var ask ddp.ReadRequest
		if !ask.Decode(payload) {
			r.t.Fatalf("from the %v: not a Read Request: % x", from, payload)
		}
		var again [ddp.ReadRequestLen]byte
		payload = again[:ask.Put(again[:])]
		r.check(from, head, r.rping.request(from, ask))
	}
	h.again = h.out.append(h.again, bytes[:k], payload)

	switch {
	case head.Op == ddp.Write:
		r.check(from, head, r.rping.write(from, head, payload))
	case head.Op == ddp.ReadResponse:
		r.check(from, head, r.rping.response(from, head, payload))
	default:
		r.untagged(from, head, payload)
	}
}

// untagged counts messages and reassembles Sends (RFC 5041 section 5.2).
func (r *replay) untagged(from capture.Side, head ddp.Header, payload []byte) {
	r.t.Helper()
	h := &r.way[from]
	if head.MSN != h.msn[head.QN]+1 {
		r.t.Fatalf("from the %v: message %d of queue %d follows message %d", from, head.MSN, head.QN, h.msn[head.QN])
	}
	if head.Op == ddp.Send {
		if head.MO != uint32(len(h.message)) {
			r.t.Fatalf("from the %v: offset %d in a Send of which %d bytes have arrived", from, head.MO, len(h.message))
		}
		h.message = append(h.message, payload...)
	}
	if !head.Last {
		return
	}
	h.msn[head.QN]++
	if head.Op == ddp.Send {
		r.check(from, head, r.rping.send(from, h.message))
		h.message = h.message[:0]
	}
}

func (r *replay) check(from capture.Side, head ddp.Header, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("%v from the %v: %v", head.Op, from, err)
	}
}

// finish checks that both sides are complete, and that rping has finished.
func (r *replay) finish() {
	r.t.Helper()
	for side := range r.way {
		if h := &r.way[side]; !h.begun || len(h.unread) > 0 || len(h.message) > 0 {
			r.t.Errorf("the %v stopped in the middle: begun %v, %d bytes of a frame and %d of a message", capture.Side(side), h.begun, len(h.unread), len(h.message))
		}
	}
	if r.rping.rounds != 4 || r.rping.step != 0 {
		r.t.Errorf("rping reached step %d of round %d, want 4 whole rounds", r.rping.step, r.rping.rounds)
	}
}

// rping checks its rounds. A step is what must come next.
type rping struct {
	size   uint32
	step   rpingStep
	rounds int
	offer  [3]uint64       // address, tag and length of the client's buffer
	ask    ddp.ReadRequest // the outstanding Read
	moved  []byte          // its data, or that of the Write
}

type rpingStep int

const (
	clientOffersSource rpingStep = iota
	serverReads
	clientResponds
	serverHasRead
	clientOffersSink
	serverWrites
	serverHasWritten
)

func (p *rping) expect(from, who capture.Side, steps ...rpingStep) error {
	for _, s := range steps {
		if p.step == s && from == who {
			return nil
		}
	}
	return fmt.Errorf("unexpected in step %d of round %d", p.step, p.rounds)
}

func (p *rping) send(from capture.Side, message []byte) error {
	if len(message) != 16 {
		return fmt.Errorf("%d bytes, rping sends 16", len(message))
	}
	if from == capture.Server {
		err := p.expect(from, capture.Server, serverHasRead, serverHasWritten)
		if p.step++; p.step > serverHasWritten {
			p.step = clientOffersSource
			p.rounds++
		}
		return err
	}
	p.offer = [3]uint64{binary.BigEndian.Uint64(message), uint64(binary.BigEndian.Uint32(message[8:])), uint64(binary.BigEndian.Uint32(message[12:]))}
	err := p.expect(from, capture.Client, clientOffersSource, clientOffersSink)
	p.step++
	if err == nil && p.offer[2] != uint64(p.size) {
		err = fmt.Errorf("offers %d bytes, want %d", p.offer[2], p.size)
	}
	return err
}

func (p *rping) request(from capture.Side, ask ddp.ReadRequest) error {
	if got := [3]uint64{ask.SourceTO, uint64(ask.Source), uint64(ask.Size)}; got != p.offer {
		return fmt.Errorf("requests %x, the offer was %x", got, p.offer)
	}
	err := p.expect(from, capture.Server, serverReads)
	p.ask, p.moved = ask, nil
	p.step++
	return err
}

func (p *rping) response(from capture.Side, head ddp.Header, payload []byte) error {
	if err := p.expect(from, capture.Client, clientResponds); err != nil {
		return err
	}
	return p.move(head, p.ask.Sink, p.ask.SinkTO, payload)
}

func (p *rping) write(from capture.Side, head ddp.Header, payload []byte) error {
	if p.step == clientOffersSource && p.rounds == 0 && from == capture.Client && len(payload) == 0 {
		return nil // ready to receive: RFC 6581 section 6
	}
	if err := p.expect(from, capture.Server, serverWrites); err != nil {
		return err
	}
	return p.move(head, ddp.Tag(p.offer[1]), p.offer[0], payload)
}

// move handles a piece that must follow the previous ones, and compares the whole with the
// data of rping.
func (p *rping) move(head ddp.Header, tag ddp.Tag, base uint64, payload []byte) error {
	if head.Tag != tag || head.TO != base+uint64(len(p.moved)) {
		return fmt.Errorf("goes to %#x in tag %#x, want %#x in tag %#x", head.TO, head.Tag, base+uint64(len(p.moved)), tag)
	}
	p.moved = append(p.moved, payload...)
	if !head.Last {
		return nil
	}
	if want := rpingData(p.rounds, int(p.size)); !bytes.Equal(p.moved, want) {
		return fmt.Errorf("moved %q, want %q", p.moved, want)
	}
	p.step++
	p.moved = nil
	return nil
}

// rpingData returns the line of a round: a word, the letters from A to z repeated, begun
// one letter later each time, and a zero.
func rpingData(round, size int) []byte {
	line := fmt.Appendf(nil, "rdma-ping-%d: ", round)
	for c := byte('A' + round); len(line) < size-1; c++ {
		if c > 'z' {
			c = 'A'
		}
		line = append(line, c)
	}
	return append(line, 0)
}
