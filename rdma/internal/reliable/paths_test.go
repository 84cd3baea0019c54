package reliable

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// Two peers with several cables between them, in virtual time. A cable has a rate, a
// delay, a queue and loss, and can be cut and repaired.

// cable is one path, in both directions.
type cable struct {
	rate  float64 // bytes per nanosecond
	delay time.Duration
	loss  float64
	cut   bool
	free  [2]time.Duration // when a direction is idle
	bytes [2]int           // carried
}

const (
	cableQueue = 256 << 10 // bytes
	gigabit    = 0.125     // bytes per nanosecond
	wireExtra  = 46 + 20   // headers of a packet below ours
)

// wireEvent is a packet that arrives.
type wireEvent struct {
	at       time.Duration
	order    int
	to, on   int
	ack      *Ack
	t        Transmission[int]
	position int
}

type wireEvents []*wireEvent

func (q wireEvents) Len() int { return len(q) }
func (q wireEvents) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q wireEvents) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *wireEvents) Push(x any)   { *q = append(*q, x.(*wireEvent)) }
func (q *wireEvents) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// earlySegment is a segment that waits for its packets or for earlier ones.
type earlySegment struct {
	t    Transmission[int]
	seen uint64
}

// pathEnd is one of the two peers.
type pathEnd struct {
	peer     Peer[int]
	pool     *Pool[int]
	early    map[Sequence]*earlySegment
	offset   int // of the next byte of the message being received
	got      int // messages received
	bytes    int
	posted   int // messages sent
	finished int
	doubles  int
}

type pathWorld struct {
	t      *testing.T
	now    time.Duration
	cables []*cable
	ends   [2]*pathEnd
	events wireEvents
	order  int
	random *rand.Rand
	idle   int // consecutive steps in which a peer claimed to have work and had none
}

func newPathWorld(t *testing.T, seed uint64, run int, cables ...*cable) *pathWorld {
	t.Helper()
	w := &pathWorld{t: t, cables: cables, random: rand.New(rand.NewPCG(seed, 7)), now: time.Millisecond}
	for i := range w.ends {
		pool := NewPool[int](Params{Single: 1380, Each: 1380, MaxRun: run, AckEvery: 16, AckDelay: 200 * time.Microsecond, LongAckDelay: 8 * time.Millisecond})
		w.ends[i] = &pathEnd{peer: NewPeer(pool), pool: pool, early: map[Sequence]*earlySegment{}}
		w.ends[i].peer.AddPaths(len(cables))
	}
	return w
}

// pathsOverhead is what a segment of several packets has besides the message.
const pathsOverhead = 40

// post queues a message.
func (e *pathEnd) post(size int) {
	e.peer.Push(&Message[int]{Length: size, Overhead: pathsOverhead, Info: e.posted})
	e.posted++
}

// send puts a packet on a cable.
func (w *pathWorld) send(from int, size int, v wireEvent) {
	c := w.cables[v.on]
	start := max(w.now, c.free[from])
	if float64(start-w.now)*c.rate > cableQueue {
		return // the queue of the switch is full
	}
	c.free[from] = start + time.Duration(float64(size+wireExtra)/c.rate)
	c.bytes[from] += size
	if c.cut || w.random.Float64() < c.loss {
		return
	}
	w.order++
	v.at, v.order, v.to = c.free[from]+c.delay, w.order, 1-from
	heap.Push(&w.events, &v)
}

// service lets a peer send what it may.
func (w *pathWorld) service(from int) (worked bool) {
	e := w.ends[from]
	e.peer.Expire(w.now, false)
	for {
		on := e.peer.Pick(w.now)
		if on < 0 {
			break
		}
		t, ok := e.peer.Next(w.now, on, 0)
		if !ok {
			break
		}
		worked = true
		if t.Lone || t.Packets == 1 {
			w.send(from, min(t.Length, e.pool.Each), wireEvent{on: on, t: t, position: t.Position})
			continue
		}
		rest := t.Length + pathsOverhead
		for k := range t.Packets {
			one := t
			one.Number += Number(k)
			w.send(from, min(rest, e.pool.Each), wireEvent{on: on, t: one, position: k})
			rest -= e.pool.Each
		}
	}
	for on := range w.cables {
		if e.peer.AckDue(w.now, on) {
			a := new(Ack)
			e.peer.WriteAck(w.now, on, a, MaxWords)
			w.send(from, 80, wireEvent{on: on, ack: a})
			worked = true
		}
	}
	return worked
}

// arrive processes a packet.
func (w *pathWorld) arrive(v *wireEvent) {
	e := w.ends[v.to]
	if v.ack != nil {
		for m := e.peer.Acknowledge(w.now, v.ack); m != nil; m = m.Following {
			if m.Info != e.finished {
				w.t.Fatalf("message %d finishes, want %d", m.Info, e.finished)
			}
			e.finished++
		}
		return
	}
	mode := AckNormal
	if v.t.Urgent {
		mode = AckNow
	} else if v.t.DelayAck {
		mode = AckDelayed
	}
	q := v.t.Sequence
	switch e.peer.Classify(q) {
	case Beyond:
		e.peer.Refuse(w.now, v.on)
		return
	case Duplicate:
		e.doubles++
		e.peer.RecordPackets(w.now, v.on, v.t.Number, 1, AckNow)
		return
	}
	s := e.early[q]
	if s == nil {
		s = &earlySegment{t: v.t}
		e.early[q] = s
	}
	e.peer.RecordPackets(w.now, v.on, v.t.Number, 1, mode)
	if s.seen |= 1 << v.position; s.seen != 1<<v.t.Packets-1 {
		return
	}
	e.peer.Accept(q)
	for e.peer.Waiting() {
		s := e.early[e.peer.NextUp()]
		delete(e.early, e.peer.NextUp())
		e.peer.MarkDelivered()
		if s.t.Message.Info != e.got || s.t.Offset != e.offset {
			w.t.Fatalf("byte %d of message %d is delivered, want byte %d of %d", s.t.Offset, s.t.Message.Info, e.offset, e.got)
		}
		e.offset += s.t.Length
		e.bytes += s.t.Length
		if s.t.Last {
			e.got, e.offset = e.got+1, 0
		}
	}
}

// step services both peers and lets time pass until something happens.
func (w *pathWorld) step() {
	worked := false
	for i := range w.ends {
		worked = w.service(i) || worked
	}
	next := w.now + 5*time.Millisecond
	for _, e := range w.ends {
		next = min(next, e.peer.SendWake())
		for on := range w.cables {
			next = min(next, e.peer.AckWake(w.now, on))
		}
	}
	if w.idle++; worked || next > w.now {
		w.idle = 0
	}
	if w.idle > 100 {
		w.t.Fatalf("at %v a peer claims to have work and has none", w.now)
	}
	if len(w.events) > 0 {
		next = min(next, w.events[0].at)
	}
	w.now = max(next, w.now+time.Microsecond)
	for len(w.events) > 0 && w.events[0].at <= w.now {
		w.arrive(heap.Pop(&w.events).(*wireEvent))
	}
}

// run steps until cond holds, and fails after limit.
func (w *pathWorld) run(limit time.Duration, what string, cond func() bool) (took time.Duration) {
	w.t.Helper()
	begin := w.now
	for !cond() {
		w.step()
		if w.now-begin > limit {
			w.t.Fatalf("not within %v: %s", limit, what)
		}
	}
	return w.now - begin
}

// rateOf sends messages for a while and returns bytes per second.
func rateOf(t *testing.T, size, run int, both bool, cables ...*cable) float64 {
	t.Helper()
	w := newPathWorld(t, 1, run, cables...)
	senders := 1
	if both {
		senders = 2
	}
	keep := func(until time.Duration) (bytes int) {
		before := w.ends[0].bytes + w.ends[1].bytes
		for w.now < until {
			for _, e := range w.ends[:senders] {
				for e.posted-e.finished < min(64, max(8, 4<<20/size)) {
					e.post(size)
				}
			}
			w.step()
		}
		return w.ends[0].bytes + w.ends[1].bytes - before
	}
	keep(100 * time.Millisecond)
	const period = 300 * time.Millisecond
	return float64(keep(w.now+period)) / period.Seconds()
}

func TestTwoPathsAreTwiceAsFast(t *testing.T) {
	for _, size := range []int{2 << 10, 64 << 10, 1 << 20} {
		if testing.Short() && size < 64<<10 {
			continue
		}
		for _, run := range []int{1, 44} {
			for _, both := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d-run-%d-both-%v", size, run, both), func(t *testing.T) {
					one := rateOf(t, size, run, both, &cable{rate: gigabit, delay: 40 * time.Microsecond})
					two := rateOf(t, size, run, both, &cable{rate: gigabit, delay: 40 * time.Microsecond}, &cable{rate: gigabit, delay: 40 * time.Microsecond})
					t.Logf("%.1f MB/s over one, %.1f MB/s over two: × %.2f", one/1e6, two/1e6, two/one)
					if two < 1.9*one {
						t.Errorf("two paths carry %.2f times what one does", two/one)
					}
				})
			}
		}
	}
}
