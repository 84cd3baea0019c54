package rail

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Traffic over rails that fail and return, in virtual time: everything arrives once and
// in order, a message behind a Write finds it written, and nothing is written later.

const (
	plots    = 16 // regions of a party that peers write to
	plotSize = 200_000
	silent   = 1 << 40 // the ID of inline sends
)

// party is one node and its view of the other.
type party struct {
	t      *testing.T
	random *rand.Rand
	dev    *Device
	cq     *queue
	qp     rdma.QP
	peer   rdma.PeerID
	other  *party
	plots  [plots][]byte
	keys   [plots]rdma.MR
	next   *rdma.SendWR // a message that waits for room
	free   bool         // the other has checked the last Write
	sent   int          // messages, some of them behind a Write
	came   int
	gaps   bool // messages may be missing
	want   int
	ended  map[uint64]int // completions by ID
	posted uint64         // requests posted
	failed int
	// silences counts reports that the other is silent.
	silences int
	book     []byte // what the other reads
	bookMR   rdma.MR
	pages    map[uint64]page // pending Reads, by ID
	bodies   map[uint64][]byte
}

// page is a piece of the other's book.
type page struct {
	text []byte
	from int
}

func newParty(t *testing.T, w *world, node int, seed uint64) *party {
	t.Helper()
	p := &party{t: t, random: rand.New(rand.NewPCG(seed, uint64(node))), dev: w.nodes[node], ended: map[uint64]int{}, free: true, pages: map[uint64]page{}, bodies: map[uint64][]byte{}}
	cq, err := p.dev.NewCQ(0)
	if err != nil {
		t.Fatal(err)
	}
	srq, err := p.dev.NewSRQ(rdma.SRQConfig{Lend: true})
	if err != nil {
		t.Fatal(err)
	}
	if p.qp, err = p.dev.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: cq, RecvCQ: cq, SRQ: srq}); err != nil {
		t.Fatal(err)
	}
	p.cq = cq.(*queue)
	for i := range p.plots {
		p.plots[i] = make([]byte, plotSize)
		if p.keys[i], err = p.dev.Register(p.plots[i], rdma.RemoteWrite|rdma.RemoteRead); err != nil {
			t.Fatal(err)
		}
	}
	p.book = make([]byte, plotSize)
	fill(p.book, byte(node))
	if p.bookMR, err = p.dev.Register(p.book, rdma.RemoteRead); err != nil {
		t.Fatal(err)
	}
	return p
}

// resolveParties lets two parties resolve each other.
func resolveParties(t *testing.T, a, b *party) {
	t.Helper()
	var err error
	a.other, b.other = b, a
	if a.peer, err = a.dev.Resolve(b.qp.Addr()); err != nil {
		t.Fatal(err)
	}
	if b.peer, err = b.dev.Resolve(a.qp.Addr()); err != nil {
		t.Fatal(err)
	}
}

func (p *party) post(wr rdma.SendWR) bool {
	p.t.Helper()
	wr.Peer = p.peer
	if wr.ID = p.posted; wr.Flags&rdma.Inline != 0 {
		wr.ID = silent
	}
	n, err := p.qp.PostSend([]rdma.SendWR{wr})
	if n == 0 && !errors.Is(err, rdma.ErrAgain) {
		p.t.Fatal(err)
	}
	if n == 1 && wr.Flags&rdma.Inline == 0 {
		if wr.Op != rdma.OpRead {
			p.bodies[wr.ID] = wr.Body.Bytes()
		}
		p.posted++
	}
	if n == 1 && wr.Flags&rdma.Inline != 0 {
		spoil(wr.Body.Bytes())
	}
	return n == 1
}

// send posts a message, and before some of them a Write that the message describes.
func (p *party) send() {
	if p.next != nil && !p.post(*p.next) {
		return // the waiting message goes first
	}
	p.next = nil
	if p.sent == p.want {
		return
	}
	if p.random.IntN(8) == 0 {
		from := p.random.IntN(plotSize)
		one := page{make([]byte, p.random.IntN(plotSize-from)), from}
		id := p.posted
		if p.post(rdma.SendWR{Op: rdma.OpRead, Body: rdma.MemOf(one.text), Remote: p.other.bookMR.Base + uint64(from), RKey: p.other.bookMR.RKey}) {
			p.pages[id] = one
		}
	}
	wr := rdma.SendWR{Op: rdma.OpSend, HeadLen: 24}
	size := 0
	if p.free && p.random.IntN(4) == 0 {
		size = 1 + p.random.IntN(plotSize)
		plot := p.sent % plots
		mr := &p.other.keys[plot]
		body := make([]byte, size)
		fill(body, byte(p.sent))
		if !p.post(rdma.SendWR{Op: rdma.OpWrite, Body: rdma.MemOf(body), Remote: mr.Base, RKey: mr.RKey}) {
			return
		}
		p.free = false
	}
	binary.LittleEndian.PutUint64(wr.Head[:], uint64(p.sent))
	binary.LittleEndian.PutUint64(wr.Head[8:], uint64(size))
	body := make([]byte, p.random.IntN(1+p.random.IntN(30_000)))
	fill(body, byte(p.sent))
	wr.Body = rdma.MemOf(body)
	// Long ones by their length, so that the random sequence stays the same.
	if len(body) <= 1024 && p.random.IntN(2) == 0 || len(body) > 1024 && len(body) <= p.dev.attr.MaxInline && len(body)%2 == 1 {
		wr.Flags = rdma.Inline
	}
	p.next = &wr
	p.sent++
}

func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = seed + byte(i*7)
	}
}

func spoil(b []byte) {
	for i := range b {
		b[i] = 0xDD
	}
}

func wrong(b []byte, seed byte) error {
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
	n := p.cq.Poll(out[:1+p.random.IntN(len(out))])
	for i := range out[:n] {
		c := &out[i]
		if c.Op == rdma.OpDisconnected {
			p.silences++
			continue
		}
		if c.Op != rdma.OpRecv {
			if c.Status != rdma.StatusOK {
				p.failed++
			}
			if c.ID == silent {
				continue // several requests share the ID
			}
			if p.ended[c.ID]++; p.ended[c.ID] > 1 {
				p.t.Fatalf("request %d completes twice, now as %+v", c.ID, *c)
			}
			for i, r := range p.dev.rails {
				if mem := rdma.MemOf(p.bodies[c.ID]); r.Device.(*port).reads(mem) {
					p.t.Fatalf("request %d (%v) completes while rail %d may retransmit a piece of it", c.ID, c.Op, i)
				}
			}
			spoil(p.bodies[c.ID]) // it belongs to us again
			if one, ok := p.pages[c.ID]; ok && c.Status == rdma.StatusOK && !bytes.Equal(one.text, p.other.book[one.from:one.from+len(one.text)]) {
				p.t.Fatalf("the Read of %d bytes at %d returns wrong bytes", len(one.text), one.from)
			}
			continue
		}
		text := c.Data.Bytes()
		number, size := int(binary.LittleEndian.Uint64(text)), int(binary.LittleEndian.Uint64(text[8:]))
		if number != p.came && !(p.gaps && number > p.came) {
			p.t.Fatalf("got message %d, want %d", number, p.came)
		}
		p.came = number + 1
		if err := wrong(text[24:], byte(number)); err != nil {
			p.t.Fatalf("message %d: %v", number, err)
		}
		if size > 0 {
			if err := wrong(p.plots[number%plots][:size], byte(number)); err != nil {
				p.t.Fatalf("message %d arrives before the Write of %d bytes posted before it: %v", number, size, err)
			}
			// The memory belongs to us again. A later check would find a Write that
			// arrives late.
			clear(p.plots[number%plots])
			p.other.free = true
		}
	}
}

func (p *party) untouched() error {
	for i, plot := range p.plots {
		for k, b := range plot {
			if b != 0 {
				return fmt.Errorf("byte %d of region %d was written after the Write had ended", k, i)
			}
		}
	}
	return nil
}

// TestFailover drives traffic in both directions while rails are cut and repaired at
// random, with several seeds.
func TestFailover(t *testing.T) {
	seeds := 8
	if testing.Short() {
		seeds = 3
	}
	var total RailCounts
	var doubles uint64
	for seed := range uint64(seeds) {
		wires := []*wire{
			{latency: 20 * time.Microsecond, speed: 0.12},
			{latency: 50 * time.Microsecond, speed: 1.2},
			{latency: 20 * time.Microsecond, speed: 0.6},
		}
		w := newWorld(t, 2, wires...)
		a, b := newParty(t, w, 0, seed), newParty(t, w, 1, seed)
		resolveParties(t, a, b)
		a.want, b.want = 600, 400
		chance := rand.New(rand.NewPCG(seed, 99))
		repair := func() {
			for _, wr := range wires {
				wr.cut = false
			}
		}
		rounds := 0
		for ; a.came < b.want || b.came < a.want; rounds++ {
			if rounds > 3_000_000 {
				t.Fatalf("seed %d: after %v there are still %d and %d messages missing", seed, w.now, b.want-a.came, a.want-b.came)
			}
			a.send()
			b.send()
			a.receive()
			b.receive()
			w.step([]*queue{a.cq, b.cq}, wires)
			if chance.IntN(400) == 0 {
				wires[chance.IntN(len(wires))].cut = true
				if wires[0].cut && wires[1].cut && wires[2].cut && chance.IntN(3) > 0 {
					repair() // mostly keep at least one
				}
			} else if chance.IntN(1500) == 0 {
				repair()
			}
		}
		repair()
		for end := w.now + 3*time.Second; w.now < end; {
			a.receive()
			b.receive()
			w.step([]*queue{a.cq, b.cq}, wires)
		}
		for _, p := range []*party{a, b} {
			if err := p.untouched(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if len(p.ended) != int(p.posted) || p.failed > 0 {
				t.Fatalf("seed %d: %d of %d requests have completed, %d of them with an error", seed, len(p.ended), p.posted, p.failed)
			}
			if n := p.qp.(rdma.DrainQP).Pending(); n != 0 {
				t.Fatalf("seed %d: %d operations are pending at the end", seed, n)
			}
			if q := p.qp.(*pair); len(q.busy) != 0 {
				t.Fatalf("seed %d: a flow is busy at the end", seed)
			}
			for _, c := range p.dev.Counts() {
				total.Left += c.Left
				total.Back += c.Back
				total.Again += c.Again
			}
			doubles += p.dev.Drops().Doubles
		}
	}
	t.Logf("rails were left %d times and used again %d times; %d pieces were sent again, %d arrived twice", total.Left, total.Back, total.Again, doubles)
	if total.Left < 10 || total.Back < 10 || total.Again < 10 || doubles < 10 {
		t.Errorf("too few events: %+v, %d doubles", total, doubles)
	}
}

// run drives the parties until cond holds, and fails after limit.
func run(t *testing.T, w *world, wires []*wire, limit time.Duration, sentence string, cond func() bool, parties ...*party) {
	t.Helper()
	var cqs []*queue
	for _, p := range parties {
		cqs = append(cqs, p.cq)
	}
	for end := w.now + limit; !cond(); w.step(cqs, wires) {
		if w.now > end {
			t.Fatalf("after %v, still not: %s", limit, sentence)
		}
		for _, p := range parties {
			p.send()
			p.receive()
		}
	}
}

// TestLoneMessageFailover cuts the rail of a lone message, with nothing else in flight
// that would reveal the cut.
func TestLoneMessageFailover(t *testing.T) {
	for cut := range 2 {
		wires := []*wire{{latency: 20 * time.Microsecond, speed: 1}, {latency: 20 * time.Microsecond, speed: 1}}
		w := newWorld(t, 2, wires...)
		a, b := newParty(t, w, 0, 1), newParty(t, w, 1, 1)
		resolveParties(t, a, b)
		a.free = false // no Writes
		a.want = 20
		run(t, w, wires, time.Second, "the first messages have arrived", func() bool { return b.came == 20 && len(a.pages) <= len(a.ended) }, a, b)
		wires[cut].cut = true
		for range 20 {
			a.want++
			run(t, w, wires, 150*time.Millisecond, "a message has arrived although a rail is cut", func() bool { return b.came == a.want }, a, b)
		}
		wires[cut].cut = false
		run(t, w, wires, time.Second, "the rail is used again", func() bool {
			return a.qp.(*pair).flows[a.peer].paths[cut].state == good && len(a.qp.(*pair).busy) == 0
		}, a, b)
	}
}

// TestLoneMessageFailoverTime: nearly all lone messages fail over within a tenth of a
// second, but with one seed of six some take up to half a second, after which the peer
// is probed. Why those are not detected sooner is an open question.
func TestLoneMessageFailoverTime(t *testing.T) {
	for seed := range uint64(40) {
		cut := int(seed % 2)
		wires := []*wire{{latency: 20 * time.Microsecond, speed: 1}, {latency: 20 * time.Microsecond, speed: 1}}
		w := newWorld(t, 2, wires...)
		a, b := newParty(t, w, 0, seed), newParty(t, w, 1, seed)
		resolveParties(t, a, b)
		a.free = false // no Writes
		a.want = 20
		run(t, w, wires, time.Second, "the first messages have arrived", func() bool { return b.came == 20 && len(a.pages) <= len(a.ended) }, a, b)
		wires[cut].cut = true
		soon := 0
		for range 20 {
			a.want++
			begin := w.now
			run(t, w, wires, callEvery, "a message has arrived although a rail is cut", func() bool { return b.came == a.want }, a, b)
			if w.now-begin < 150*time.Millisecond {
				soon++
			}
		}
		if soon < 18 {
			t.Errorf("seed %d: only %d of 20 messages arrived within 150 ms", seed, soon)
		}
	}
}

// TestRailDeclaresPeerGone: the device of a rail declares the peer gone. The other
// rails continue, and the rail is tried until it delivers.
func TestRailDeclaresPeerGone(t *testing.T) {
	wires := []*wire{{latency: 20 * time.Microsecond, speed: 1, peerTimeout: time.Second}, {latency: 20 * time.Microsecond, speed: 0.01, peerTimeout: time.Second}}
	w := newWorld(t, 2, wires...)
	a, b := newParty(t, w, 0, 2), newParty(t, w, 1, 2)
	resolveParties(t, a, b)
	a.want, b.want = 200, 200
	run(t, w, wires, time.Second, "some messages have arrived", func() bool { return b.came > 20 }, a, b)
	wires[0].cut = true
	state := func() pathState { return a.qp.(*pair).flows[a.peer].paths[0].state }
	talking := func(cond func() bool) func() bool {
		return func() bool {
			a.want = max(a.want, b.came+20) // only a peer in use is tried again
			return cond()
		}
	}
	run(t, w, wires, 10*time.Second, "the rail has declared the peer gone", talking(func() bool { return state() == gone }), a, b)
	wires[0].cut = false
	run(t, w, wires, 10*time.Second, "the rail is used again", talking(func() bool { return state() == good }), a, b)
	run(t, w, wires, 60*time.Second, "all messages have arrived", func() bool { return b.came == a.want && a.came == b.want }, a, b)
	if a.failed+b.failed > 0 {
		t.Errorf("%d requests failed although a rail was left", a.failed+b.failed)
	}
}

// TestPeerIsGone: no rail delivers. Everything completes once, as PeerGone, and a peer
// that comes back is reached in a new epoch.
func TestPeerIsGone(t *testing.T) {
	for _, peerTimeout := range []time.Duration{time.Second, 20 * time.Second} {
		wires := []*wire{{latency: 20 * time.Microsecond, speed: 1, peerTimeout: peerTimeout}, {latency: 20 * time.Microsecond, speed: 1, peerTimeout: peerTimeout}}
		w := newWorld(t, 2, wires...)
		a, b := newParty(t, w, 0, 3), newParty(t, w, 1, 3)
		resolveParties(t, a, b)
		a.want = 100
		run(t, w, wires, time.Second, "some messages have arrived", func() bool { return b.came > 20 }, a, b)
		for _, wr := range wires {
			wr.cut = true
		}
		run(t, w, wires, 60*time.Second, "everything has ended", func() bool {
			return a.sent == a.want && a.next == nil && len(a.ended) == int(a.posted) && a.qp.(*pair).pending == 0
		}, a, b)
		if a.failed == 0 {
			t.Fatal("nothing failed although the peer was unreachable")
		}
		for _, wr := range wires {
			wr.cut = false
		}
		b.gaps = true // failed messages arrive before the others, or not at all
		a.want += 10
		run(t, w, wires, 5*time.Second, "messages arrive again", func() bool { return b.came == a.want }, a, b)
	}
}

// TestTimeoutOnAllRails: the devices of the rails keep trying for a minute, and
// Config.Timeout declares the peer gone earlier. A shorter pause has no effect.
func TestTimeoutOnAllRails(t *testing.T) {
	const timeout = 3 * time.Second
	wires := []*wire{{latency: 20 * time.Microsecond, speed: 1, peerTimeout: time.Minute}, {latency: 20 * time.Microsecond, speed: 1, peerTimeout: time.Minute}}
	w := newWorld(t, 2, wires...)
	a, b := newParty(t, w, 0, 3), newParty(t, w, 1, 3)
	a.dev.timeout, b.dev.timeout = timeout, timeout
	resolveParties(t, a, b)
	cut := func(on bool) {
		for _, wr := range wires {
			wr.cut = on
		}
	}
	a.want = 100
	run(t, w, wires, time.Second, "some messages have arrived", func() bool { return b.came > 20 }, a, b)
	cut(true)
	begin := w.now
	run(t, w, wires, time.Minute, "two seconds have passed", func() bool { return w.now >= begin+timeout*2/3 }, a, b)
	cut(false)
	run(t, w, wires, 10*time.Second, "all messages have arrived", func() bool { return b.came == a.want }, a, b)
	if a.failed+a.silences+b.silences > 0 {
		t.Fatalf("a pause of %v makes %d requests fail and is reported %d times", timeout*2/3, a.failed, a.silences+b.silences)
	}
	a.want += 50
	run(t, w, wires, time.Second, "some messages have arrived", func() bool { return b.came > 110 }, a, b)
	cut(true)
	begin = w.now
	run(t, w, wires, time.Minute, "the silence is reported", func() bool { return a.silences > 0 }, a, b)
	if took := w.now - begin; took < timeout*9/10 || took > timeout+time.Second {
		t.Errorf("the peer is declared gone after %v of silence, the timeout is %v", took, timeout)
	}
	if err := a.dev.Explain(a.peer); err == nil {
		t.Error("Explain returns nothing")
	}
}

// TestStripesBySpeed: each rail carries a share of a long Write that its speed allows,
// and both finish at the same time.
func TestStripesBySpeed(t *testing.T) {
	for _, speeds := range [][]float64{{0.125, 0.125}, {0.1, 0.3}, {0.05, 0.5}} {
		wires := []*wire{{latency: 50 * time.Microsecond, speed: speeds[0]}, {latency: 50 * time.Microsecond, speed: speeds[1]}}
		w := newWorld(t, 2, wires...)
		a, b := newParty(t, w, 0, 4), newParty(t, w, 1, 4)
		resolveParties(t, a, b)
		const size = 8 << 20
		text := make([]byte, size)
		mr, err := b.dev.Register(make([]byte, size), rdma.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		var took time.Duration
		var before, after []RailCounts
		for range 3 { // the first ones measure the speed
			before = a.dev.Counts()
			start := w.now
			n := len(a.ended)
			if !a.post(rdma.SendWR{Op: rdma.OpWrite, Body: rdma.MemOf(text), Remote: mr.Base, RKey: mr.RKey}) {
				t.Fatal("the Write is not accepted")
			}
			run(t, w, wires, 10*time.Second, "the Write has ended", func() bool { return len(a.ended) > n }, a, b)
			took, after = w.now-start, a.dev.Counts()
		}
		best := time.Duration(size / (speeds[0] + speeds[1]))
		if took > best*115/100 {
			t.Errorf("speeds %v: %v for 8 MB, optimum %v", speeds, took, best)
		}
		share := float64(after[1].Bytes-before[1].Bytes) / size
		if want := speeds[1] / (speeds[0] + speeds[1]); share < want*0.9 || share > want*1.1 {
			t.Errorf("speeds %v: the second rail carries %.2f of a Write, expected %.2f", speeds, share, want)
		}
	}
}
