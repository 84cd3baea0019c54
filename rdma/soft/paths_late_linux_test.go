package soft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Traffic over paths that fail and return, and then deliver what they had held back:
// everything arrives once and in order, a message behind a Write finds it written, and
// nothing is written later.

const (
	plots    = 16 // regions of a party that its peer writes to
	plotSize = 100_000
	unasked  = 1 << 40 // the ID of inline sends
)

// party is a node and its view of the other.
type party struct {
	*testNode
	t      *testing.T
	random *rand.Rand
	cut    [3]bool
	held   []packet
	lates  int // packets that were delivered late
	peer   rdma.PeerID
	other  *party
	plots  [plots][]byte
	keys   [plots]rdma.MR
	next   *rdma.SendWR // a message that waits for room
	free   bool         // the other has checked the last Write
	sent   int          // messages, some of them behind a Write
	came   int
	want   int
	posted uint64
	ended  map[uint64]bool
	book   []byte // what the other reads
	bookMR rdma.MR
	pages  map[uint64]page // pending Reads
	bodies map[uint64][]byte
}

// page is a piece of the other's book.
type page struct {
	text []byte
	from int
}

func newParty(t *testing.T, node int, seed uint64) *party {
	t.Helper()
	p := &party{testNode: newTestNode(t, pathsConfig(uint32(node), 3)), t: t, random: rand.New(rand.NewPCG(seed, uint64(node))),
		free: true, ended: map[uint64]bool{}, pages: map[uint64]page{}, bodies: map[uint64][]byte{}, book: make([]byte, plotSize)}
	var err error
	for i := range p.plots {
		p.plots[i] = make([]byte, plotSize)
		if p.keys[i], err = p.Register(p.plots[i], rdma.RemoteWrite); err != nil {
			t.Fatal(err)
		}
	}
	fillBytes(p.book, byte(node))
	if p.bookMR, err = p.Register(p.book, rdma.RemoteRead); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.outgoing.disturb = byPacket(p, p.hold)
	p.mu.Unlock()
	return p
}

// hold holds back the packets of cut paths, and sends those of paths that were repaired.
func (p *party) hold(o *outbox) {
	kept := 0
	for i := range o.packets[:o.n] {
		if l := &o.packets[i]; p.cut[l.on] {
			p.held = append(p.held, packet{data: slices.Clone(l.data), to: l.to, on: l.on})
			continue
		}
		o.packets[kept], o.packets[i] = o.packets[i], o.packets[kept]
		kept++
	}
	o.n = kept
	p.held = slices.DeleteFunc(p.held, func(l packet) bool {
		if o.n == batchSize || p.cut[l.on] {
			return false
		}
		to := &o.packets[o.n]
		to.data, to.body, to.to, to.on, to.index, to.addressKnown = append(to.data[:0], l.data...), nil, l.to, l.on, runIndex{}, false
		o.n++
		p.lates++
		return true
	})
}

func (p *party) setCut(path int, on bool) {
	p.mu.Lock()
	p.cut[path] = on
	p.mu.Unlock()
}

func (p *party) post(wr rdma.SendWR) bool {
	p.t.Helper()
	wr.Peer = p.peer
	inline := wr.Flags&rdma.Inline != 0
	if wr.ID = p.posted; inline {
		wr.ID = unasked
	}
	n, err := p.qp.PostSend([]rdma.SendWR{wr})
	switch {
	case n == 0 && !errors.Is(err, rdma.ErrAgain):
		p.t.Fatal(err)
	case n == 1 && inline:
		clear(wr.Body.Bytes()) // it belongs to us again
	case n == 1:
		if wr.Op != rdma.OpRead {
			p.bodies[wr.ID] = wr.Body.Bytes()
		}
		p.posted++
	}
	return n == 1
}

// send posts a message, and before some of them a Write that the message describes.
func (p *party) send() {
	if p.next != nil && !p.post(*p.next) {
		return // the waiting message goes first
	}
	if p.next = nil; p.sent == p.want {
		return
	}
	if p.random.IntN(8) == 0 {
		from := p.random.IntN(plotSize)
		one, id := page{make([]byte, p.random.IntN(plotSize-from)), from}, p.posted
		if p.post(rdma.SendWR{Op: rdma.OpRead, Body: rdma.MemOf(one.text), Remote: p.other.bookMR.Base + uint64(from), RKey: p.other.bookMR.RKey}) {
			p.pages[id] = one
		}
	}
	wr := rdma.SendWR{Op: rdma.OpSend, HeadLen: 16}
	size := 0
	if p.free && p.random.IntN(4) == 0 {
		size = 1 + p.random.IntN(plotSize)
		mr := &p.other.keys[p.sent%plots]
		body := make([]byte, size)
		fillBytes(body, byte(p.sent))
		if !p.post(rdma.SendWR{Op: rdma.OpWrite, Body: rdma.MemOf(body), Remote: mr.Base, RKey: mr.RKey}) {
			return
		}
		p.free = false
	}
	binary.LittleEndian.PutUint64(wr.Head[:], uint64(p.sent))
	binary.LittleEndian.PutUint64(wr.Head[8:], uint64(size))
	body := make([]byte, p.random.IntN(1+p.random.IntN(30_000)))
	fillBytes(body, byte(p.sent))
	if wr.Body = rdma.MemOf(body); len(body) <= p.attr.MaxInline && p.random.IntN(2) == 0 {
		wr.Flags = rdma.Inline
	}
	p.next = &wr
	p.sent++
}

// checkBytes checks what fillBytes has written.
func checkBytes(b []byte, seed byte) error {
	for i := range b {
		if b[i] != seed+byte(i*7) {
			return fmt.Errorf("byte %d of %d is %#x instead of %#x", i, len(b), b[i], seed+byte(i*7))
		}
	}
	return nil
}

// receive polls and checks the completions.
func (p *party) receive() {
	p.t.Helper()
	var out [16]rdma.Completion
	for _, c := range out[:p.cq.Poll(out[:1+p.random.IntN(len(out))])] {
		if c.Status != rdma.StatusOK || c.Op == rdma.OpDisconnected {
			p.t.Fatalf("%+v", c)
		}
		if c.Op != rdma.OpRecv {
			if p.ended[c.ID] {
				p.t.Fatalf("request %d completes twice, now as %+v", c.ID, c)
			}
			p.ended[c.ID] = true
			clear(p.bodies[c.ID]) // it belongs to us again: a retransmission would show
			delete(p.bodies, c.ID)
			if one, ok := p.pages[c.ID]; ok && !bytes.Equal(one.text, p.other.book[one.from:one.from+len(one.text)]) {
				p.t.Fatalf("the Read of %d bytes at %d returns wrong bytes", len(one.text), one.from)
			}
			continue
		}
		text := c.Data.Bytes()
		number, size := int(binary.LittleEndian.Uint64(text)), int(binary.LittleEndian.Uint64(text[8:]))
		if number != p.came {
			p.t.Fatalf("got message %d, want %d", number, p.came)
		}
		p.came++
		if err := checkBytes(text[16:], byte(number)); err != nil {
			p.t.Fatalf("message %d: %v", number, err)
		}
		if size > 0 {
			if err := checkBytes(p.plots[number%plots][:size], byte(number)); err != nil {
				p.t.Fatalf("message %d arrives before the Write of %d bytes posted before it: %v", number, size, err)
			}
			// The memory belongs to us again. A later check would find a Write that
			// arrives late.
			clear(p.plots[number%plots])
			p.other.free = true
		}
	}
}

// TestLatePaths drives traffic in both directions while paths are cut and repaired at
// random, with several seeds.
func TestLatePaths(t *testing.T) {
	if testing.Short() {
		t.Skip("cuts take time")
	}
	left, back, lates, doubles := uint64(0), uint64(0), 0, uint64(0)
	for seed := range uint64(6) {
		a, b := newParty(t, 0, seed), newParty(t, 1, seed)
		a.other, b.other, a.peer, b.peer = b, a, a.resolve(t, b.testNode), b.resolve(t, a.testNode)
		a.want, b.want = 600, 400
		chance := rand.New(rand.NewPCG(seed, 99))
		set := func(path int, cut bool) {
			a.setCut(path, cut)
			b.setCut(path, cut)
		}
		next := time.Now()
		for start := time.Now(); a.came < b.want || b.came < a.want || len(a.ended) < int(a.posted) || len(b.ended) < int(b.posted); {
			if time.Since(start) > testTimeout {
				t.Fatalf("seed %d: after %v there are still %d and %d messages missing", seed, testTimeout, b.want-a.came, a.want-b.came)
			}
			for _, p := range []*party{a, b} {
				p.send()
				p.receive()
			}
			if now := time.Now(); now.After(next) {
				next = now.Add(time.Duration(1+chance.IntN(30)) * time.Millisecond)
				if set(chance.IntN(3), true); chance.IntN(3) == 0 {
					for path := range 3 {
						set(path, false)
					}
				}
			}
		}
		for path := range 3 {
			set(path, false)
		}
		for start := time.Now(); time.Since(start) < 3*time.Second; { // what was held back arrives
			if time.Since(start) > 100*time.Millisecond && !a.outstanding() && !b.outstanding() {
				break
			}
			a.receive()
			b.receive()
		}
		for _, p := range []*party{a, b} {
			p.mu.Lock() // synchronizes with the progress thread's writes
			for i, plot := range p.plots {
				if k := slices.IndexFunc(plot, func(c byte) bool { return c != 0 }); k >= 0 {
					t.Errorf("seed %d: byte %d of region %d was written after the Write had ended", seed, k, i)
				}
			}
			lates += p.lates
			doubles += p.traffic.duplicates
			p.mu.Unlock()
			if p.outstanding() {
				t.Errorf("seed %d: operations are pending at the end", seed)
			}
			for _, c := range p.Counts() {
				left += c.Left
				back += c.Back
			}
		}
	}
	t.Logf("paths were left %d times and used again %d times; %d packets were delivered late, %d were duplicates", left, back, lates, doubles)
	if left < 10 || back < 10 || lates < 10 || doubles < 10 {
		t.Error("too few events")
	}
}
