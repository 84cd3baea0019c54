package rdmatest

import (
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Lending: a message stays readable in the device's buffer until the next Poll.

func lendChecks() []check {
	rule := "a lent message is valid until the next Poll of that queue"
	return []check{
		{name: "lend-until-next-poll", rule: rule, on: reliable, peers: 3, run: lendUntilNextPoll},
		{name: "lend-across-other-queue", rule: rule, on: reliable, queues: queueConfig{split: true}, run: lendAcrossOtherQueue},
		{name: "lend-never-runs-out", on: reliable, run: lendNeverRunsOut,
			rule: "the next Poll ends the lending, so that buffers never run out"},
	}
}

// loan is a lent message with its expected contents.
type loan struct {
	data []byte // the device's memory
	text []byte
}

func (l loan) check() error { return differ(l.data, l.text) }

// lendUntilNextPoll lets peers send as much as they can while the messages of one Poll are
// still lent.
func lendUntilNextPoll(r *rig) {
	var flows []*flow
	for _, n := range r.nodes {
		flows = append(flows, r.newFlow(n, 400, func(from, to int) bool { return to == 0 }))
	}
	var loans []loan
	b, mine := r.nodes[0], flows[0]
	b.sink = func(from int, c *rdma.Completion) error {
		l, seed := r.messageShape(from, 0, mine.next[from]) // the expected contents, not the observed ones
		mine.next[from]++
		mine.wanted--
		text := make([]byte, l.head+l.body)
		l.write(text[:l.head], text[l.head:], seed)
		loans = append(loans, loan{c.Data.Bytes(), text})
		return nil
	}
	fill := func() {
		for _, f := range flows[1:] {
			for range 12 {
				if err := f.advance(); err != nil {
					r.t.Fatalf("node %d posts: %v", f.n.index, err)
				}
				r.step(f.n)
			}
		}
	}
	r.pollUntil("all messages have arrived", func() bool {
		fill()
		loans = loans[:0]
		r.step(b)
		fill()
		for i, l := range loans {
			if err := l.check(); err != nil {
				r.t.Fatalf("message %d of %d that one Poll lent changed before the next Poll: %v", i, len(loans), err)
			}
		}
		return mine.wanted == 0
	}, r.nodes[1:]...)
	r.pollUntil("all senders have finished", func() bool { return r.nodes[1].open+r.nodes[2].open == 0 })
}

// lendAcrossOtherQueue polls the send queue while messages of the receive queue are lent.
func lendAcrossOtherQueue(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	var held loan
	b.sink = func(from int, c *rdma.Completion) error {
		held = loan{c.Data.Bytes(), append([]byte{}, c.Data.Bytes()...)}
		return nil
	}
	w := a.send(1, 20, 300)
	r.post(a, w)
	pb := b.portTo(0)
	var out [8]rdma.Completion
	r.pollUntil("the message has arrived", func() bool {
		if held.data == nil {
			b.pollQueue(pb, pb.recvCQ, out[:])
		}
		return held.data != nil
	}, a)
	for range 200 {
		if k, err := a.offer([]*work{a.send(1, 20, 300)}); err != nil && (k != 0 || !errors.Is(err, rdma.ErrAgain)) {
			r.t.Fatal(err)
		}
		r.step(a)
		b.pollQueue(pb, pb.sendCQ, out[:])
		if err := held.check(); err != nil {
			r.t.Fatalf("a lent message changed although only the send queue was polled: %v", err)
		}
	}
	r.pollUntil("the sender has finished", func() bool { return a.open == 0 })
}

// lendNeverRunsOut receives far more messages than a device could have buffers for.
func lendNeverRunsOut(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	count, bytes := 0, 0
	b.sink = func(_ int, c *rdma.Completion) error {
		if c.Status != rdma.StatusOK {
			return fmt.Errorf("message %d: %v", count, c.Status)
		}
		count++
		bytes += c.Data.Len()
		return nil
	}
	const messages, size = 6000, 2048
	body := min(size, a.attr.MaxSend)
	w := a.send(1, 0, body)
	w.keep = true
	deadline := 0
	for sent := 0; sent < messages; {
		w.id, w.done = a.lastID+1, false
		k, err := a.offer([]*work{w})
		if k == 1 {
			a.lastID++
			sent++
			deadline = 0
		} else if !errors.Is(err, rdma.ErrAgain) {
			r.t.Fatal(err)
		}
		r.pollUntil("the send has completed, so that its memory can be reused", func() bool { return a.open == 0 })
		delete(a.works, w.id)
		if deadline++; deadline > 1e6 {
			r.t.Fatalf("after %d of %d messages nothing more is accepted: lent buffers are not reused", sent, messages)
		}
		if k == 0 {
			r.step()
		}
	}
	r.pollUntil("all messages have arrived", func() bool { return count == messages })
	if bytes != messages*body {
		r.t.Errorf("%d messages had %d bytes together instead of %d", count, bytes, messages*body)
	}
}
