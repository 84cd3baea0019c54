package rdmatest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// Ordering and exactly-once delivery under load, and the weaker guarantees of UD.

func orderChecks() []check {
	rule := "between two peers of a reliable transport, messages arrive once and in the order in which they were posted"
	return []check{
		{name: "order-one-to-one", rule: rule, on: reliable,
			run: func(r *rig) { r.flood(400, func(from, to int) bool { return from == 0 }) }},
		{name: "order-both-ways", rule: rule, on: reliable,
			run: func(r *rig) { r.flood(400, allPairs) }},
		{name: "order-all-to-one", rule: rule, on: reliable, peers: 5,
			run: func(r *rig) { r.flood(200, func(from, to int) bool { return to == 0 }) }},
		{name: "order-one-to-all", rule: rule, on: reliable, peers: 5,
			run: func(r *rig) { r.flood(200, func(from, to int) bool { return from == 0 }) }},
		{name: "order-all-to-all", rule: rule, on: reliable, peers: 5,
			run: func(r *rig) { r.flood(100, allPairs) }},
		{name: "order-all-to-one-parallel", rule: rule, on: reliable, peers: 4,
			run: func(r *rig) { r.floodParallel(300, func(from, to int) bool { return to == 0 }) }},
		{name: "order-all-to-all-parallel", rule: rule, on: reliable, peers: 4,
			run: func(r *rig) { r.floodParallel(200, allPairs) }},
		{name: "datagrams-whole", rule: "a UD message may be lost, duplicated or late, but what arrives is what was sent", on: rdma.UD, peers: 3,
			run: datagramsWhole},
	}
}

func allPairs(from, to int) bool { return from != to }

// messageShape describes the k-th message of one peer to another; both sides compute it.
type messageShape struct{ head, body int }

func (r *rig) messageShape(from, to, k int) (messageShape, uint64) {
	seed := uint64(from)<<48 | uint64(to)<<32 | uint64(k)
	g := generator(seed)
	attr := r.nodes[0].attr
	sizes := [...]int{0, 1, 7, 8, 24, 40, 48, 49, 56, 57, 64, 65, 200, 1000,
		attr.MaxInline, attr.MaxInline + 1, attr.SegmentHint, attr.SegmentHint + 1, 5000}
	l := messageShape{head: g.intBelow(rdma.HeadMax + 1), body: sizes[g.intBelow(len(sizes))]}
	l.body = min(l.body, attr.MaxSend-l.head, 20<<10)
	return l, seed
}

func (l messageShape) write(head, body []byte, seed uint64) {
	fill(head, seed)
	fill(body, ^seed)
}

// flow is one node's part of a flood.
type flow struct {
	r       *rig
	n       *node
	todo    []*work
	next    []int // by sender: number of the next message
	wanted  int   // messages still expected
	random  generator
	scratch []byte
}

// newFlow prepares the messages that a node has to send and to expect. The messages for
// different peers are shuffled.
func (r *rig) newFlow(n *node, each int, talks func(from, to int) bool) *flow {
	f := &flow{r: r, n: n, next: make([]int, len(r.nodes)), random: generator(n.index)}
	count := make([]int, len(r.nodes))
	var cards []int
	for j := range r.nodes {
		if j != n.index && talks(n.index, j) {
			for range each {
				cards = append(cards, j)
			}
		}
		if j != n.index && talks(j, n.index) {
			f.wanted += each
		}
	}
	for i := range cards {
		j := i + f.random.intBelow(len(cards)-i)
		cards[i], cards[j] = cards[j], cards[i]
	}
	for _, to := range cards {
		l, seed := r.messageShape(n.index, to, count[to])
		count[to]++
		w := n.send(to, l.head, l.body)
		l.write(w.head, w.body, seed)
		w.inline = l.body <= n.attr.MaxInline && f.random.intBelow(3) > 0
		f.todo = append(f.todo, w)
	}
	n.sink = f.receive
	return f
}

// receive compares a message with the next one expected from its sender.
func (f *flow) receive(from int, c *rdma.Completion) error {
	k := f.next[from]
	l, seed := f.r.messageShape(from, f.n.index, k)
	size := l.head + l.body
	if cap(f.scratch) < size {
		f.scratch = make([]byte, size)
	}
	want := f.scratch[:size]
	l.write(want[:l.head], want[l.head:], seed)
	if err := differ(c.Data.Bytes(), want); err != nil {
		return fmt.Errorf("this should be message %d of node %d (head %d, body %d bytes): %w", k, from, l.head, l.body, err)
	}
	f.next[from]++
	f.wanted--
	if f.wanted < 0 {
		return errors.New("more messages arrived than were sent")
	}
	return nil
}

// advance posts some of the remaining messages in one call.
func (f *flow) advance() error {
	if len(f.todo) == 0 {
		return nil
	}
	most := min(1+f.random.intBelow(16), len(f.todo))
	run := 1
	for run < most && f.n.portTo(f.todo[run].to) == f.n.portTo(f.todo[0].to) {
		run++
	}
	k, err := f.n.offer(f.todo[:run])
	f.todo = f.todo[k:]
	if errors.Is(err, rdma.ErrAgain) {
		return nil
	}
	return err
}

func (f *flow) done() bool { return len(f.todo) == 0 && f.wanted == 0 && f.n.open == 0 }

// flood sends each messages between every pair that talks, all from one goroutine, with
// Polls of varying size in between.
func (r *rig) flood(each int, talks func(from, to int) bool) {
	r.t.Helper()
	flows := r.flows(each, talks)
	r.pollUntil("all messages were sent and have arrived", func() bool {
		done := true
		for _, f := range flows {
			for range f.random.intBelow(8) { // often more than the receivers can accept
				if err := f.advance(); err != nil {
					r.t.Fatalf("node %d posts: %v", f.n.index, err)
				}
			}
			f.n.batch = 1 + f.random.intBelow(40)
			done = done && f.done()
		}
		return done
	})
	r.settle() // a duplicate would arrive now
}

// floodParallel is flood with a goroutine for each node.
func (r *rig) floodParallel(each int, talks func(from, to int) bool) {
	r.t.Helper()
	flows := r.flows(each, talks)
	r.parallel(func(n *node) (bool, error) {
		f := flows[n.index]
		err := f.advance()
		n.batch = 1 + f.random.intBelow(40)
		return f.done(), err
	})
	r.settle()
}

func (r *rig) flows(each int, talks func(from, to int) bool) []*flow {
	if testing.Short() {
		each = each/2 + 1 // still enough to fill the queues, which TestSuiteFindsFaults checks
	}
	var flows []*flow
	for _, n := range r.nodes {
		flows = append(flows, r.newFlow(n, each, talks))
	}
	return flows
}

// datagramsWhole sends numbered UD messages until each node has received some from each
// other.
func datagramsWhole(r *rig) {
	got := make([][]int, len(r.nodes))
	sent := make([][]int, len(r.nodes))
	for i, n := range r.nodes {
		got[i], sent[i] = make([]int, len(r.nodes)), make([]int, len(r.nodes))
		n.sink = func(from int, c *rdma.Completion) error {
			data := c.Data.Bytes()
			if len(data) < 8 {
				return fmt.Errorf("no message of node %d is as short as %d bytes", from, len(data))
			}
			k := int(binary.LittleEndian.Uint64(data))
			if k >= sent[from][i] {
				return fmt.Errorf("node %d never sent a message %d", from, k)
			}
			want := make([]byte, datagramSize(n.attr, k))
			writeDatagram(want, from, i, k)
			got[i][from]++
			return differ(data, want)
		}
	}
	const enough = 20
	r.pollUntil("20 messages arrived from each peer, with lost ones replaced", func() bool {
		done := true
		for i, n := range r.nodes {
			for j := range r.nodes {
				if i == j || got[j][i] >= enough {
					continue
				}
				done = false
				k := sent[i][j]
				text := make([]byte, datagramSize(n.attr, k))
				writeDatagram(text, i, j, k)
				w := n.send(j, 8, len(text)-8)
				copy(w.head, text)
				copy(w.body, text[8:])
				w.inline = len(w.body) <= n.attr.MaxInline
				sent[i][j]++ // it may arrive before PostSend returns
				if _, err := n.offer([]*work{w}); err != nil {
					if !errors.Is(err, rdma.ErrAgain) {
						r.t.Fatalf("node %d posts a datagram: %v", i, err)
					}
					sent[i][j]--
				}
			}
		}
		return done
	})
	r.pollUntil("every send has completed, lost or not", func() bool {
		for _, n := range r.nodes {
			if n.open > 0 {
				return false
			}
		}
		return true
	})
}

func datagramSize(attr *rdma.Attr, k int) int {
	sizes := [...]int{8, 9, 40, 64, 100, 8 + attr.MaxInline, 9 + attr.MaxInline, attr.MaxSend}
	return min(sizes[k%len(sizes)], attr.MaxSend, 8<<10)
}

// writeDatagram writes a message that begins with its number.
func writeDatagram(b []byte, from, to, k int) {
	fill(b, uint64(from)<<48|uint64(to)<<32|uint64(k))
	binary.LittleEndian.PutUint64(b, uint64(k))
}
