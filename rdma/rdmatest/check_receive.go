package rdmatest

import (
	"errors"

	"github.com/muster-mpi/muster/rdma"
)

// Receiving: buffers that the user posted, and messages that the device lends.

func receiveChecks() []check {
	posted := queueConfig{posted: true, recvDepth: 16}
	return []check{
		{name: "recv-into-posted-buffers", on: reliable, queues: posted, run: recvPosted,
			rule: "a message is stored in a posted buffer, whose ID its completion carries, and modifies nothing outside it"},
		{name: "recv-into-own-queue", on: reliable, queues: queueConfig{ownQueue: true}, run: recvPosted,
			rule: "a queue pair without SRQ uses the buffers of its own PostRecv"},
		{name: "recv-too-long", on: reliable, queues: posted, run: recvTooLong,
			rule: "a message that does not fit the posted buffer completes with StatusTooLong and modifies nothing outside the buffer"},
		{name: "recv-waits-for-a-buffer", on: reliable, queues: posted, run: recvWaits,
			rule: "a message without a buffer waits until one is posted, and order is preserved"},
		{name: "recv-low-water", on: reliable, queues: queueConfig{posted: true, recvDepth: 16, lowWater: 4}, run: recvLowWater,
			rule: "OpLowWater appears when fewer posted buffers than LowWater are left, and not before"},
		{name: "recv-post-takes-a-prefix", on: reliable, queues: posted, run: recvPostPrefix,
			rule: "PostRecv accepts a prefix of the list and returns ErrAgain for the rest"},
		{name: "recv-lending-takes-no-buffers", on: all, run: recvLendingRefuses,
			rule: "PostRecv fails on a lending queue"},
	}
}

// buffers posts guarded buffers of a size and returns them by ID.
func (n *node) buffers(p *port, size, count int, firstID uint64) map[uint64]*guarded {
	n.rig.t.Helper()
	made := map[uint64]*guarded{}
	var list []rdma.RecvWR
	for i := range count {
		g := newGuarded(size, i%8, uint64(i))
		wr := rdma.RecvWR{ID: firstID + uint64(i), Body: rdma.MemOf(g.mem)}
		if n.attr.LocalKeys {
			wr.LKey = n.register(g.mem, 0).LKey
		}
		made[wr.ID] = g
		list = append(list, wr)
	}
	k, err := p.postRecv(list)
	if k != count || err != nil {
		n.rig.t.Fatalf("post %d buffers of %d bytes: %d were accepted, %v", count, size, k, err)
	}
	for i := range list {
		list[i] = rdma.RecvWR{ID: ^uint64(0)} // the requests belong to the caller again
	}
	return made
}

func (p *port) postRecv(list []rdma.RecvWR) (int, error) {
	if p.srq != nil {
		return p.srq.PostRecv(list)
	}
	return p.qp.PostRecv(list)
}

func recvPosted(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	const size = 2000
	sizes := []int{0, 1, 64, 65, 999, size - 8}
	bufs := b.buffers(b.portTo(0), size, len(sizes), 1<<40)
	var ws []*work
	for _, body := range sizes {
		ws = append(ws, a.send(1, 8, body))
	}
	r.post(a, ws...)
	r.pollUntil("each message has filled a buffer", func() bool { return len(b.arrived) == len(ws) && a.open == 0 })
	for i, w := range ws {
		got := b.arrived[i]
		g := bufs[got.id]
		switch {
		case g == nil:
			r.t.Fatalf("message %d completes with the ID %#x, which no free buffer has", i, got.id)
		case got.status != rdma.StatusOK:
			r.t.Fatalf("message %d completes with %v", i, got.status)
		case got.at != rdma.MemOf(g.mem).Addr():
			r.t.Errorf("message %d: Data is not at the start of the posted buffer", i)
		}
		if err := differ(got.data, w.text); err != nil {
			r.t.Errorf("message %d: %v", i, err)
		}
		if err := g.changedOnly(0, len(g.mem), g.mem); err != nil {
			r.t.Errorf("message %d: %v", i, err)
		}
		if err := differ(g.mem[:len(w.text)], w.text); err != nil {
			r.t.Errorf("message %d in its buffer: %v", i, err)
		}
		delete(bufs, got.id)
	}
}

func recvTooLong(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	size := min(100, a.attr.MaxSend-1)
	bufs := b.buffers(b.portTo(0), size, 2, 7)
	long, short := a.send(1, 8, size-7), a.send(1, 8, size-8)
	r.post(a, long)
	r.pollUntil("the message that is too long has completed", func() bool { return len(b.arrived) == 1 })
	got := b.arrived[0]
	if got.status != rdma.StatusTooLong || bufs[got.id] == nil {
		r.t.Fatalf("a message of %d bytes for a buffer of %d completes with %v and the ID %d; it should be %v and the buffer's ID",
			len(long.text), size, got.status, got.id, rdma.StatusTooLong)
	}
	for id, g := range bufs {
		if err := g.changedOnly(0, len(g.mem), g.mem); err != nil {
			r.t.Errorf("buffer %d: %v", id, err)
		}
	}
	if r.ends {
		return
	}
	r.post(a, short)
	r.pollUntil("the next message has arrived", func() bool { return len(b.arrived) == 2 && a.open == 0 })
	if err := differ(b.arrived[1].data, short.text); err != nil {
		r.t.Errorf("the message after the one that was too long: %v", err)
	}
	if b.arrived[1].id == got.id {
		r.t.Errorf("the buffer %d was used twice", got.id)
	}
}

func recvWaits(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	var ws []*work
	for i := range 6 {
		w := a.send(1, 8, i*50)
		w.inline = len(w.body) <= a.attr.MaxInline
		ws = append(ws, w)
	}
	for i, w := range ws {
		if _, err := a.offer([]*work{w}); errors.Is(err, rdma.ErrAgain) {
			ws = ws[:i] // a device may make the sender wait
			break
		} else if err != nil {
			r.t.Fatalf("post to a peer that has no buffer: %v", err)
		}
	}
	r.settle()
	if len(b.arrived) > 0 {
		r.t.Fatal("a message arrived although no buffer was posted")
	}
	for i := range ws {
		b.buffers(b.portTo(0), 500, 1, uint64(1+i))
		r.pollUntil("a message has arrived for the buffer", func() bool { return len(b.arrived) == i+1 })
		if err := differ(b.arrived[i].data, ws[i].text); err != nil {
			r.t.Fatalf("message %d after waiting: %v", i, err)
		}
	}
	r.pollUntil("the sends have completed", func() bool { return a.open == 0 })
}

func recvLowWater(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	for round := range 3 {
		b.buffers(b.portTo(0), 100, 8-3*min(round, 1), uint64(100*round)) // 8 are posted
		b.arrived, b.lowWater = nil, 0
		send := func(count int) {
			for range count {
				r.post(a, a.sendInline(1, 8, 0))
			}
		}
		send(4)
		r.pollUntil("4 of 8 buffers are used", func() bool { return len(b.arrived) == 4 })
		r.settle()
		if b.lowWater != 0 {
			r.t.Fatalf("round %d: OpLowWater was reported with 4 buffers left, LowWater is 4", round)
		}
		send(1)
		r.pollUntil("OpLowWater is reported when 3 buffers are left", func() bool { return b.lowWater > 0 })
	}
}

func recvPostPrefix(r *rig) {
	b := r.nodes[1]
	p := b.portTo(0)
	list := make([]rdma.RecvWR, 3000)
	for i := range list {
		mem, lkey := b.memory(64)
		list[i] = rdma.RecvWR{ID: uint64(i), Body: rdma.MemOf(mem), LKey: lkey}
	}
	k, err := p.postRecv(list)
	switch {
	case k == len(list) && err == nil:
		r.t.Skip("the device accepted 3000 buffers at once, which is allowed")
	case k < 0 || k >= len(list) || !errors.Is(err, rdma.ErrAgain):
		r.t.Fatalf("PostRecv of 3000 buffers into a queue of 16 accepts %d and returns %v", k, err)
	case k < 16:
		r.t.Errorf("PostRecv accepted %d buffers into a queue of 16", k)
	}
	a := r.nodes[0]
	for range k {
		r.post(a, a.sendInline(1, 8, 0))
	}
	r.pollUntil("each buffer that was accepted receives a message", func() bool { return len(b.arrived) == k })
	seen := map[uint64]bool{}
	for _, got := range b.arrived {
		if got.id >= uint64(k) || seen[got.id] {
			r.t.Errorf("the buffer %d was used twice or not accepted: PostRecv accepted the first %d", got.id, k)
		}
		seen[got.id] = true
	}
}

func recvLendingRefuses(r *rig) {
	n := r.nodes[0]
	mem, lkey := n.memory(64)
	p := n.portTo(1)
	list := []rdma.RecvWR{{ID: 1, Body: rdma.MemOf(mem), LKey: lkey}}
	if k, err := p.srq.PostRecv(list); k != 0 || err == nil {
		r.t.Errorf("PostRecv on a lending queue accepts %d and returns %v", k, err)
	}
	if k, err := p.qp.PostRecv(list); k != 0 || err == nil {
		r.t.Errorf("PostRecv on a queue pair that has an SRQ accepts %d and returns %v", k, err)
	}
}
