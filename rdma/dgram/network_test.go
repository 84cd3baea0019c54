package dgram

import (
	"container/heap"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"
)

// A network in virtual time. Nodes exchange RD datagrams, sealed and checked.
// Everything to a node passes one link with a rate, a queue and a delay, and the seed
// decides which datagrams are impaired. The node checks that each message of each
// sender arrives once, in order and complete.

// impairments is what happens to datagrams in transit.
type impairments struct {
	lose, double, late, corrupt float64       // shares
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

// simNode is a process with a socket.
type simNode struct {
	net   *network
	index int
	keys  *keyring
	windowPool
	peers    []*simPeer
	busy     time.Duration // until when its link is busy
	wakeAt   time.Duration // of the next scheduled wake-up
	received int           // bytes of messages
	dead     bool
	deaf     bool // has no room for datagrams
	delayAck bool // nobody waits for completions of its messages
}

// simPeer is the state that a node keeps about another.
type simPeer struct {
	peer
	reorderBuffer map[psn][]byte
	nextID        uint64 // of the next message to send
	doneID        uint64 // of the next message to finish
	wantID        uint64 // of the next message expected
	wantAt        int    // its next expected byte
	finished      int
	gotAt         time.Duration
}

func newNetwork(t *testing.T, nodes, mss int, w impairments) *network {
	n := &network{t: t, impairments: w, random: rand.New(rand.NewPCG(7, uint64(nodes)))}
	for i := range nodes {
		keys, err := newKeyring([]byte("the key of the simulated job"), false)
		if err != nil {
			t.Fatal(err)
		}
		node := &simNode{net: n, index: i, keys: keys, wakeAt: never}
		for range nodes {
			node.peers = append(node.peers, &simPeer{peer: newPeer(&node.windowPool, mss), reorderBuffer: map[psn][]byte{}})
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
	p.push(&message{length: length, id: p.nextID, delayAck: s.delayAck && p.lossFree(s.net.now)})
	p.nextID++
	s.poll()
}

// poll does for a node what Poll does for a device.
func (s *simNode) poll() {
	if s.dead {
		return
	}
	wake := never
	for to, p := range s.peers {
		p.expire(s.net.now)
		for {
			seg, more := p.sender.next(s.net.now)
			if !more {
				break
			}
			s.transmit(to, header{kind: kindSegment, urgent: seg.urgent, delayAck: seg.delayAck, number: seg.number, left: stampOf(s.net.now)}, content(s.index, seg))
		}
		if p.due(s.net.now) {
			s.transmit(to, header{kind: kindAck}, nil)
		}
		wake = min(wake, p.sender.wake(), p.receiver.wake(s.net.now))
	}
	if wake < s.wakeAt {
		s.wakeAt = wake
		s.net.after(max(wake-s.net.now, 0), func() {
			if s.wakeAt == wake {
				s.wakeAt = never
				s.poll()
			}
		})
	}
}

// content is the segment on the wire: message ID, offset and last flag, then its bytes.
func content(from int, seg segment) []byte {
	b := make([]byte, 0, 17+seg.length)
	b = binary.BigEndian.AppendUint64(b, seg.message.id)
	b = binary.BigEndian.AppendUint32(b, uint32(seg.offset))
	last := byte(0)
	if seg.last {
		last = 1
	}
	b = append(b, last)
	for i := range seg.length {
		b = append(b, patternByte(from, seg.message.id, seg.offset+i))
	}
	return b
}

// patternByte returns byte i of a message.
func patternByte(from int, id uint64, i int) byte { return byte(from*31 + int(id)*7 + i*3 + i>>8) }

func (s *simNode) transmit(to int, h header, segment []byte) {
	if p := s.peers[to]; p.ackPending > 0 {
		h.hasAck = true
		p.receiver.write(s.net.now, &h.ack)
	}
	h.toIncarnation = s.net.nodes[to].keys.incarnation
	h.from, h.to = uint16(s.index), uint16(to)
	if !s.keys.stampHeader(&h) {
		s.net.t.Fatal("serial numbers are used up")
	}
	d := s.keys.seal(append(h.append(nil), segment...))
	s.net.transport(d, s.net.nodes[to])
}

// transport passes a datagram through the impaired link.
func (n *network) transport(d []byte, to *simNode) {
	n.sent++
	if n.random.Float64() < n.lose {
		return
	}
	if n.rate > 0 {
		waiting := max(to.busy-n.now, 0).Seconds() * n.rate
		if int(waiting)+len(d) > n.queue {
			n.dropped++
			return
		}
		to.busy = max(to.busy, n.now) + time.Duration(float64(len(d))/n.rate*1e9)
	}
	delay := max(to.busy-n.now, 0) + n.delay
	if n.random.Float64() < n.late {
		delay += time.Duration(n.random.Int64N(int64(n.lateBy)))
	}
	if n.random.Float64() < n.corrupt {
		n.corrupted++
		d = append([]byte(nil), d...)
		for range 1 + n.random.IntN(4) {
			d[n.random.IntN(len(d))] ^= byte(1 + n.random.IntN(255))
		}
	}
	n.after(delay, func() { to.arrive(d) })
	if n.random.Float64() < n.double {
		n.after(delay+n.delay, func() { to.arrive(d) })
	}
}

// arrive processes a datagram.
func (s *simNode) arrive(d []byte) {
	if s.dead {
		return
	}
	sealed, err := s.keys.check(d)
	if err != nil {
		return
	}
	var h header
	segment, err := h.parse(sealed)
	if err != nil {
		s.net.t.Fatalf("a validly sealed datagram does not parse: %v", err)
	}
	p := s.peers[h.from]
	if h.hasAck {
		for m := p.acknowledge(s.net.now, &h.ack); m != nil; m = m.following {
			if m.id != p.doneID {
				s.net.t.Fatalf("message %d is finished before message %d", m.id, p.doneID)
			}
			p.doneID++
			p.finished++
		}
	}
	if h.kind == kindSegment {
		s.take(&h, segment)
	}
	s.poll()
}

func (s *simNode) take(h *header, segment []byte) {
	p := s.peers[h.from]
	switch p.classify(h.number) {
	case duplicate, beyond:
		p.refuse(s.net.now, h.left)
	default:
		if s.deaf {
			p.refuse(s.net.now, h.left)
			break
		}
		p.reorderBuffer[h.number] = segment
		p.accept(s.net.now, h.number, h.left, h.ackMode())
	}
	for p.waiting() {
		s.deliver(int(h.from), p.reorderBuffer[p.nextUp])
		delete(p.reorderBuffer, p.nextUp)
		p.markDelivered()
	}
}

// deliver checks a delivered segment.
func (s *simNode) deliver(from int, b []byte) {
	p := s.peers[from]
	id, at, last := binary.BigEndian.Uint64(b), int(binary.BigEndian.Uint32(b[8:])), b[12] == 1
	if id != p.wantID || at != p.wantAt {
		s.net.t.Fatalf("node %d gets byte %d of message %d from %d, want byte %d of message %d",
			s.index, at, id, from, p.wantAt, p.wantID)
	}
	for i, c := range b[13:] {
		if want := patternByte(from, id, at+i); c != want {
			s.net.t.Fatalf("byte %d of message %d from node %d is %#x, want %#x", at+i, id, from, c, want)
		}
	}
	s.received += len(b) - 13
	p.gotAt = s.net.now
	p.wantAt += len(b) - 13
	if last {
		p.wantID, p.wantAt = p.wantID+1, 0
	}
}
