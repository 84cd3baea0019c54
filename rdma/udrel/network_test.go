package udrel

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// A network in virtual time. Two nodes exchange packets in their wire format, and the
// seed decides which are impaired. A node checks that each message arrives once, in
// order and complete.

type impairments struct {
	lose, double, late float64 // shares
	lateBy             time.Duration
	delay              time.Duration
	queue              int // packets in transit before the rest is dropped; 0: no limit
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

type network struct {
	t      *testing.T
	now    time.Duration
	todo   agenda
	count  int
	random *rand.Rand
	impairments
	nodes   [2]*simNode
	onWay   int
	sent    int
	dropped int
}

type simNode struct {
	net   *network
	other *simNode
	windowPool
	peer
	messagePool messagePool
	waiting     map[psn][]byte
	sentNext    byte // fill byte of the next message to send
	wantNext    byte // and of the next one expected
	wantAt      int
	finished    int
	got         int
	acks        int
	dead        bool
	wakeAt      time.Duration
}

func newNetwork(t *testing.T, w impairments, seed uint64) *network {
	n := &network{t: t, impairments: w, random: rand.New(rand.NewPCG(seed, 1))}
	for i := range n.nodes {
		n.nodes[i] = &simNode{net: n, waiting: map[psn][]byte{}, wakeAt: never}
	}
	n.nodes[0].other, n.nodes[1].other = n.nodes[1], n.nodes[0]
	return n
}

func (n *network) after(d time.Duration, do func()) {
	n.count++
	heap.Push(&n.todo, event{n.now + d, n.count, do})
}

func (n *network) run(sentence string, until time.Duration, cond func() bool) {
	n.t.Helper()
	for !cond() {
		if len(n.todo) == 0 || n.todo[0].at > until {
			n.t.Fatalf("at %v, still not: %s", n.now, sentence)
		}
		e := heap.Pop(&n.todo).(event)
		n.now = e.at
		e.do()
	}
}

// post sends a message of length bytes, each of them its number.
func (s *simNode) post(length int) {
	m := s.messagePool.take(0)
	m.kind, m.room, m.body, m.sending, m.awaited = kindSend, 1000, rdma.MemOf(make([]byte, length)), true, true
	for i := range m.body.Bytes() {
		m.body.Bytes()[i] = s.sentNext
	}
	s.sentNext++
	s.push(m)
	s.poll()
}

// poll does what Poll does.
func (s *simNode) poll() {
	if s.dead {
		return
	}
	probe := s.expire(s.net.now)
	for {
		number, f := s.next(s.net.now, &s.windowPool)
		if f == nil {
			break
		}
		h := header{kind: kindSend, number: number, left: stampOf(s.net.now)}
		if f.message.whole && int(f.offset+f.length) == f.message.length() {
			h.flags |= flagLast
		}
		if s.sender.urgent(f) {
			h.flags |= flagUrgent
		}
		s.transmit(&h, f.message.body.Slice(int(f.offset), int(f.offset+f.length)).Bytes())
	}
	if probe || s.ackDue(s.net.now) {
		h := header{kind: kindAck, left: stampOf(s.net.now)}
		if probe {
			h.flags |= flagUrgent
		}
		s.acks++
		s.transmit(&h, nil)
	}
	if wake := min(s.sender.wake(), s.receiver.wake()); wake < s.wakeAt {
		s.wakeAt = wake
		s.net.after(max(wake-s.net.now, 0), func() {
			if s.wakeAt == wake {
				s.wakeAt = never
				s.poll()
			}
		})
	}
}

func (s *simNode) transmit(h *header, contents []byte) {
	n := s.net
	s.receiver.write(n.now, h)
	var head [rdma.HeadMax]byte
	packet := append(append([]byte{}, head[:h.put(&head)]...), contents...)
	copies := 1
	n.sent++
	switch {
	case n.random.Float64() < n.lose || n.queue > 0 && n.onWay >= n.queue:
		n.dropped++
		return
	case n.random.Float64() < n.double:
		copies = 2
	}
	for range copies {
		delay := n.delay
		if n.random.Float64() < n.late {
			delay += time.Duration(n.random.Int64N(int64(n.lateBy)))
		}
		n.onWay++
		n.after(delay, func() { n.onWay--; s.other.arrive(packet) })
	}
}

func (s *simNode) arrive(packet []byte) {
	n := s.net
	if s.dead {
		return
	}
	var h header
	if !h.parse(packet) {
		n.t.Fatalf("a packet of %d bytes does not parse", len(packet))
	}
	if h.flags&flagHeld != 0 {
		s.measure(stampOf(n.now).since(h.held))
	}
	seen := &h.history
	if h.kind.numbered() {
		seen = nil
	}
	for m := s.acknowledge(n.now, h.want, seen, &s.windowPool); m != nil; m = m.following {
		s.finished++
	}
	if h.kind == kindAck {
		if h.flags&flagUrgent != 0 {
			s.queueAck(n.now, &h, true)
		}
		s.poll()
		return
	}
	switch v := s.classify(h.number); v {
	case duplicate, beyond:
		s.queueAck(n.now, &h, true)
	case early:
		s.waiting[h.number] = packet
		s.hold(h.number)
		s.queueAck(n.now, &h, true)
	case inOrder:
		s.queueAck(n.now, &h, false)
		s.take(&h)
		s.deliver()
		for s.holds() {
			var early header
			early.parse(s.waiting[s.want])
			delete(s.waiting, s.want)
			s.take(&early)
			s.deliver()
		}
	}
	s.poll()
}

// take checks the next piece of the stream.
func (s *simNode) take(h *header) {
	for _, b := range h.contents {
		if b != s.wantNext {
			s.net.t.Fatalf("got message %d, want %d, at byte %d", b, s.wantNext, s.wantAt)
		}
		s.wantAt++
	}
	if h.flags&flagLast != 0 {
		s.wantNext, s.wantAt = s.wantNext+1, 0
		s.got++
	}
}

// TestImpairments sends in both directions through impaired networks.
func TestImpairments(t *testing.T) {
	for _, v := range []struct {
		name   string
		w      impairments
		length int
		within time.Duration
	}{
		{"no loss", impairments{delay: 50 * time.Microsecond}, 100, 100 * time.Millisecond},
		{"no loss, long messages", impairments{delay: 50 * time.Microsecond}, 20000, time.Second},
		{"a tenth lost, duplicated and late", impairments{lose: 0.1, double: 0.1, late: 0.1, lateBy: time.Millisecond, delay: 50 * time.Microsecond}, 100, 5 * time.Second},
		{"the same, long messages", impairments{lose: 0.1, double: 0.1, late: 0.1, lateBy: time.Millisecond, delay: 50 * time.Microsecond}, 20000, 60 * time.Second},
		{"half lost", impairments{lose: 0.5, delay: 50 * time.Microsecond}, 1500, 300 * time.Second},
		{"long delay", impairments{lose: 0.02, delay: 50 * time.Millisecond}, 1500, 60 * time.Second},
		{"a short queue", impairments{delay: 200 * time.Microsecond, queue: 24}, 1500, 10 * time.Second},
	} {
		t.Run(v.name, func(t *testing.T) {
			n := newNetwork(t, v.w, 11)
			const messages = 500
			for range messages {
				for _, s := range n.nodes {
					s.post(v.length)
				}
			}
			n.run("all messages have arrived and are acked", v.within, func() bool {
				for _, s := range n.nodes {
					if s.got < messages || s.finished < messages {
						return false
					}
				}
				return true
			})
			for _, s := range n.nodes {
				if s.sendWindow != nil || !s.sender.idle() || s.inFlight != 0 || s.sender.waiting != 0 {
					t.Errorf("an idle peer still has a send window, or counts %d in flight and %d pending", s.inFlight, s.sender.waiting)
				}
				if v.w == (impairments{delay: v.w.delay}) && s.repeated > 0 {
					t.Errorf("%d packets were retransmitted although none was lost", s.repeated)
				}
			}
		})
	}
}

// TestAcksAreFew checks T1 6.6.1: in one direction there is an ack for about 50
// messages, and none at all if replies can carry it.
func TestAcksAreFew(t *testing.T) {
	n := newNetwork(t, impairments{delay: 5 * time.Microsecond}, 1)
	a, b := n.nodes[0], n.nodes[1]
	const messages = 1000
	for range messages {
		m := a.messagePool.take(0)
		m.kind, m.room, m.body, m.sending = kindSend, 1000, rdma.MemOf(make([]byte, 1)), true
		m.body.Bytes()[0] = a.sentNext
		a.sentNext++
		a.push(m)
		a.poll()
		n.run("the message has arrived", time.Minute, func() bool { return b.wantNext == a.sentNext })
	}
	n.run("all acks have arrived", time.Minute, func() bool { return a.finished == messages })
	if b.acks < messages/ackEvery || b.acks > messages/ackEvery+2 {
		t.Errorf("%d acks were sent for %d messages, want one for %d", b.acks, messages, ackEvery)
	}
}

// TestRetransmitsOnlyLost loses one packet of a burst. That packet alone is
// retransmitted, long before the timeout.
func TestRetransmitsOnlyLost(t *testing.T) {
	n := newNetwork(t, impairments{delay: 50 * time.Microsecond}, 1)
	a, b := n.nodes[0], n.nodes[1]
	n.lose = 1
	a.post(10)
	n.lose = 0
	for range 9 {
		a.post(10)
	}
	n.run("all have arrived", 2*time.Millisecond, func() bool { return b.got == 10 && a.finished == 10 })
	if a.repeated != 1 {
		t.Errorf("%d packets were retransmitted for one that was lost", a.repeated)
	}
}

// TestTimeoutBackoff checks that timeouts double while a peer is silent.
func TestTimeoutBackoff(t *testing.T) {
	n := newNetwork(t, impairments{delay: 50 * time.Microsecond}, 1)
	a, b := n.nodes[0], n.nodes[1]
	b.dead = true
	a.post(10)
	n.run("ten seconds have passed", 20*time.Second, func() bool { return n.now > 10*time.Second })
	if n.sent < 10 || n.sent > 40 {
		t.Errorf("a peer that is silent for 10 s is sent %d packets, want about two each second", n.sent)
	}
	b.dead = false
	n.run("the message has arrived", 12*time.Second, func() bool { return b.got == 1 && a.finished == 1 })
}

// TestIdlePeerIsSmall bounds the memory of an idle peer.
func TestIdlePeerIsSmall(t *testing.T) {
	if n := sizeOf[peer](); n > 320 {
		t.Errorf("an idle peer takes %d bytes, want 320 at most", n)
	}
}

// TestSteadyTrafficAllocatesNothing runs both halves without a network.
func TestSteadyTrafficAllocatesNothing(t *testing.T) {
	var h windowPool
	var s sender
	var r receiver
	messagePool := messagePool{}
	now := time.Duration(0)
	var head [rdma.HeadMax]byte
	round := func() {
		now += 10 * time.Microsecond
		m := messagePool.take(0)
		m.kind, m.room, m.sending = kindSend, 1000, true
		s.push(m)
		number, f := s.next(now, &h)
		out := header{kind: kindSend, number: number, left: stampOf(now)}
		if f == nil || r.classify(number) != inOrder {
			t.Fatal("the packet is not sent, or is not the next")
		}
		n := out.put(&head)
		var in header
		in.parse(head[:n])
		r.queueAck(now, &in, true)
		r.deliver()
		back := header{kind: kindAck}
		r.write(now, &back)
		for m := s.acknowledge(now, back.want, &back.history, &h); m != nil; m = nil {
			messagePool.put(m)
		}
	}
	round()
	if n := testing.AllocsPerRun(200, round); n != 0 {
		t.Errorf("a message allocates %v times", n)
	}
}
