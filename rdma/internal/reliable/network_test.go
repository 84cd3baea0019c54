package reliable

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// A network in virtual time. Nodes exchange packets. Everything to a node passes one
// link with a rate, a queue and a delay, and the seed decides which packets are
// impaired. A corrupted packet counts as lost: carriers drop it. The node checks that
// each message of each sender arrives once, in order and complete.

// impairments is what happens to datagrams in transit.
type impairments struct {
	lose, double, late, corrupt float64       // shares
	renege                      float64       // share of packets whose arrival makes a receiver drop the segment's others
	lateBy                      time.Duration // maximum extra delay of a late one
	delay                       time.Duration // one way
	rate                        float64       // bytes per second; 0: no limit
	queue                       int           // bytes queued before the rest is dropped
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
	nodes []*simNode

	corrupted, dropped, sent int
}

// simNode is a process.
type simNode struct {
	net      *network
	index    int
	pool     *Pool[uint64]
	peers    []*simPeer
	busy     time.Duration // until when its link is busy
	wakeAt   time.Duration // of the next scheduled wake-up
	received int           // bytes of messages
	dead     bool
	deaf     bool        // has no room for packets
	delayAck bool        // nobody waits for completions of its messages
	stopped  bool        // it has no core
	socket   []simPacket // what has arrived meanwhile
}

// simPeer is the state that a node keeps about another.
type simPeer struct {
	Peer[uint64]
	reorderBuffer map[Sequence]*partial
	nextID        uint64 // of the next message to send
	doneID        uint64 // of the next message to finish
	wantID        uint64 // of the next message expected
	wantAt        int    // its next expected byte
	finished      int
	gotAt         time.Duration
}

// partial is a segment of which packets have arrived.
type partial struct {
	segment simPacket
	got     uint64
}

// simPacket is a packet on the wire.
type simPacket struct {
	from           int
	hasAck, data   bool
	urgent, delay  bool
	ack            Ack
	sequence       Sequence
	number         Number
	packets        int
	position       int
	id             uint64
	offset, length int // of the segment
	last           bool
	size           int
}

func (d *simPacket) mode() AckMode {
	switch {
	case d.urgent:
		return AckNow
	case d.delay:
		return AckDelayed
	}
	return AckNormal
}

const (
	ackDelay     = 200 * time.Microsecond
	longAckDelay = 8 * time.Millisecond
	ackEvery     = 16
)

// single has segments of one packet, runs has longer ones.
func single(mss int) Params {
	return Params{Single: mss, MaxRun: 1, AckEvery: ackEvery, AckDelay: ackDelay, LongAckDelay: longAckDelay}
}

func runs(mss int) Params {
	p := single(mss)
	p.MaxRun, p.Each = 40, mss+50
	return p
}

func newNetwork(t *testing.T, nodes int, params Params, w impairments) *network {
	n := &network{t: t, impairments: w, random: rand.New(rand.NewPCG(7, uint64(nodes)))}
	for i := range nodes {
		node := &simNode{net: n, index: i, pool: NewPool[uint64](params), wakeAt: Never}
		for range nodes {
			node.peers = append(node.peers, &simPeer{Peer: NewPeer(node.pool), reorderBuffer: map[Sequence]*partial{}})
		}
		n.nodes = append(n.nodes, node)
	}
	return n
}

func (n *network) after(d time.Duration, do func()) {
	n.count++
	heap.Push(&n.todo, event{n.now + d, n.count, do})
}

// run lets time pass until cond holds, and fails at the given time.
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

// post sends a message of the given length.
func (s *simNode) post(to, length int) {
	p := s.peers[to]
	p.Push(&Message[uint64]{Length: length, Overhead: 80, Info: p.nextID, DelayAck: s.delayAck && p.LossFree(s.net.now)})
	p.nextID++
	s.poll()
}

// poll does for a node what Poll does for a device.
func (s *simNode) poll() {
	if s.dead || s.stopped {
		return
	}
	wake := Never
	for to, p := range s.peers {
		p.Expire(s.net.now, len(s.socket) > 0)
		for {
			t, more := p.Next(s.net.now, 0, 0)
			if !more {
				break
			}
			s.transmit(to, t)
		}
		if p.AckDue(s.net.now, 0) {
			s.send(to, simPacket{size: 60})
		}
		wake = min(wake, p.SendWake(), p.AckWake(s.net.now, 0))
	}
	if wake < s.wakeAt {
		s.wakeAt = wake
		s.net.after(max(wake-s.net.now, 0), func() {
			if s.wakeAt == wake {
				s.wakeAt = Never
				s.poll()
			}
		})
	}
}

// transmit sends the packets of a transmission.
func (s *simNode) transmit(to int, t Transmission[uint64]) {
	first, count := 0, t.Packets
	if t.Lone {
		first, count = t.Position, 1
	}
	for i := range count {
		size := t.Length + 80
		if t.Packets > 1 {
			h := &s.pool.Params
			size = min(h.Each, t.Length+80-(first+i)*h.Each)
		}
		s.send(to, simPacket{
			data: true, urgent: t.Urgent && i == count-1, delay: t.DelayAck, sequence: t.Sequence, number: t.Number + Number(i), packets: t.Packets,
			position: first + i, id: t.Message.Info, offset: t.Offset, length: t.Length, last: t.Last, size: size,
		})
	}
}

func (s *simNode) send(to int, d simPacket) {
	if p := s.peers[to]; p.AckPending(0) {
		d.hasAck = true
		p.WriteAck(s.net.now, 0, &d.ack, MaxWords)
	}
	d.from = s.index
	s.net.transport(d, s.net.nodes[to])
}

// transport passes a packet through the impaired link.
func (n *network) transport(d simPacket, to *simNode) {
	n.sent++
	if n.random.Float64() < n.lose {
		return
	}
	if n.rate > 0 {
		waiting := max(to.busy-n.now, 0).Seconds() * n.rate
		if int(waiting)+d.size > n.queue {
			n.dropped++
			return
		}
		to.busy = max(to.busy, n.now) + time.Duration(float64(d.size)/n.rate*1e9)
	}
	delay := max(to.busy-n.now, 0) + n.delay
	if n.random.Float64() < n.late {
		delay += time.Duration(n.random.Int64N(int64(n.lateBy)))
	}
	if n.random.Float64() < n.corrupt {
		n.corrupted++
		return
	}
	n.after(delay, func() { to.arrive(d) })
	if n.random.Float64() < n.double {
		n.after(delay+n.delay, func() { to.arrive(d) })
	}
}

// arrive processes a packet.
func (s *simNode) arrive(d simPacket) {
	if s.dead {
		return
	}
	if s.stopped {
		s.socket = append(s.socket, d)
		return
	}
	p := s.peers[d.from]
	if d.hasAck {
		for m := p.Acknowledge(s.net.now, &d.ack); m != nil; m = m.Following {
			if m.Info != p.doneID {
				s.net.t.Fatalf("message %d is finished before message %d", m.Info, p.doneID)
			}
			p.doneID++
			p.finished++
		}
	}
	if d.data {
		s.take(&d)
	}
	s.poll()
}

// resume lets a node that was stopped read what has arrived, packet by packet.
func (s *simNode) resume() {
	s.stopped = false
	for len(s.socket) > 0 {
		d := s.socket[0]
		s.socket = s.socket[1:]
		s.arrive(d)
	}
}

func (s *simNode) take(d *simPacket) {
	p := s.peers[d.from]
	switch p.Classify(d.sequence) {
	case Beyond:
		p.Refuse(s.net.now, 0)
	case Duplicate:
		p.RecordPackets(s.net.now, 0, d.number, 1, AckNow)
	default:
		if s.deaf {
			p.Refuse(s.net.now, 0)
			break
		}
		a := p.reorderBuffer[d.sequence]
		if a == nil {
			a = &partial{segment: *d}
			p.reorderBuffer[d.sequence] = a
		}
		if s.net.random.Float64() < s.net.renege && d.packets > 1 { // drop what was acked
			a.got = 0
		}
		a.got |= 1 << d.position
		if a.got == 1<<d.packets-1 {
			p.Accept(d.sequence)
		}
		p.RecordPackets(s.net.now, 0, d.number, 1, d.mode())
	}
	for p.Waiting() {
		s.deliver(d.from, &p.reorderBuffer[p.NextUp()].segment)
		delete(p.reorderBuffer, p.NextUp())
		p.MarkDelivered()
	}
}

// deliver checks a delivered segment.
func (s *simNode) deliver(from int, d *simPacket) {
	p := s.peers[from]
	if d.id != p.wantID || d.offset != p.wantAt {
		s.net.t.Fatalf("node %d gets byte %d of message %d from %d, want byte %d of message %d",
			s.index, d.offset, d.id, from, p.wantAt, p.wantID)
	}
	s.received += d.length
	p.gotAt = s.net.now
	p.wantAt += d.length
	if d.last {
		p.wantID, p.wantAt = p.wantID+1, 0
	}
}
