package rdmatest

import (
	"errors"

	"github.com/muster-mpi/muster/rdma"
)

// What PostSend and Poll do at their limits.

func postChecks() []check {
	return []check{
		{name: "post-takes-a-prefix", on: reliable, peers: 3, run: postTakesPrefix,
			rule: "PostSend never blocks, takes a prefix of what it is given, in order, and returns ErrAgain for the rest, which may be offered again after a Poll"},
		{name: "post-unknown-op", on: reliable, run: postUnknownOp,
			rule: "an operation that the device does not have is refused with ErrUnsupported, and what stands before it in the list is taken"},
		{name: "post-too-long", on: reliable, run: postTooLong,
			rule: "a message longer than Attr.MaxSend, or an inline body longer than Attr.MaxInline, is refused and nothing of it arrives"},
		{name: "post-nothing", on: all, run: postNothing,
			rule: "an empty list of work is no error"},
		{name: "poll-one-by-one", on: reliable, run: pollOneByOne,
			rule: "Poll gives as much as fits and keeps the rest"},
		{name: "poll-without-room", on: reliable, run: pollWithoutRoom,
			rule: "a Poll with no room makes progress and loses nothing"},
		{name: "poll-two-queues", on: reliable, queues: queueConfig{split: true}, run: pollTwoQueues,
			rule: "sends complete on SendCQ and messages arrive on RecvCQ"},
	}
}

// postTakesPrefix fills the way to peers that do not poll, with lists for both
// mixed, until the device will take no more; then everything it took must come.
func postTakesPrefix(r *rig) {
	a := r.nodes[0]
	const most = 3000 // a device without bounds is right too
	taken := make([][]*work, 3)
	refused, offered := 0, 0
	for offered < most && refused < 20 {
		var list []*work
		for k := range 7 {
			to := 1 + (offered+k/3)%2
			if r.kind == rdma.RC {
				to = 1 // a list goes to one queue pair
			}
			w := a.sendInline(to, 8+k, k*9)
			list = append(list, w)
		}
		k, err := a.offer(list)
		if err != nil {
			if !errors.Is(err, rdma.ErrAgain) {
				r.t.Fatalf("a full queue is answered with ErrAgain, not with: %v", err)
			}
			refused++
		}
		for _, w := range list[:k] {
			taken[w.to] = append(taken[w.to], w)
		}
		offered += len(list)
	}
	r.t.Logf("took %d to node 1 and %d to node 2, and said ErrAgain %d times", len(taken[1]), len(taken[2]), refused)
	r.until("everything that was taken has arrived", func() bool {
		return len(r.nodes[1].arrived) >= len(taken[1]) && len(r.nodes[2].arrived) >= len(taken[2])
	})
	r.settle()
	for to := 1; to <= 2; to++ {
		got := r.nodes[to].arrived
		if len(got) != len(taken[to]) {
			r.t.Fatalf("PostSend took %d messages for node %d, and %d came", len(taken[to]), to, len(got))
		}
		for i, w := range taken[to] {
			if err := differ(got[i].data, w.text); err != nil {
				r.t.Fatalf("message %d for node %d: %v", i, to, err)
			}
		}
	}
	r.post(a, a.sendInline(1, 1, 0)) // and the queue is open again
}

func postUnknownOp(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	var unknown []rdma.Op
	for op := rdma.OpSend; op <= rdma.OpLowWater; op++ {
		if !a.attr.Ops.Has(op) {
			unknown = append(unknown, op)
		}
	}
	for i, op := range unknown {
		bad := a.work(op, 1)
		list := []*work{a.sendInline(1, 5, 0), bad, a.sendInline(1, 6, 0)}
		k, err := a.offer(list)
		if k != 1 || !errors.Is(err, rdma.ErrUnsupported) {
			r.t.Fatalf("a list of a send, a %v and a send: PostSend takes %d and says %v; it should take 1 and return ErrUnsupported", op, k, err)
		}
		r.until("the send before the refused operation has arrived", func() bool { return len(b.arrived) > i })
	}
	r.settle()
	if len(b.arrived) != len(unknown) {
		r.t.Errorf("%d messages came of %d that were taken", len(b.arrived), len(unknown))
	}
}

func postTooLong(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	long := a.sendExactly(1, 1, a.attr.MaxSend)
	longInline := a.sendExactly(1, 1, a.attr.MaxInline+1)
	longInline.inline = true
	for _, w := range []*work{long, longInline} {
		_, err := a.offer([]*work{w})
		if errors.Is(err, rdma.ErrAgain) {
			r.t.Fatalf("a send of %d bytes (inline %v) will never fit, but PostSend returns ErrAgain", 1+len(w.body), w.inline)
		}
		if err != nil {
			continue
		}
		r.until("the send that was taken, but is too long, completes", func() bool { return w.done })
		if w.status == rdma.StatusOK {
			r.t.Errorf("a send of %d bytes (inline %v) succeeds: MaxSend is %d, MaxInline is %d", 1+len(w.body), w.inline, a.attr.MaxSend, a.attr.MaxInline)
		}
	}
	r.settle()
	if len(b.arrived) > 0 {
		r.t.Errorf("a message that is too long arrives with %d bytes", len(b.arrived[0].data))
	}
}

func postNothing(r *rig) {
	for _, list := range [][]rdma.SendWR{nil, {}} {
		if k, err := r.nodes[0].portTo(1).qp.PostSend(list); k != 0 || err != nil {
			r.t.Errorf("PostSend of nothing: %d, %v", k, err)
		}
	}
	r.settle()
}

func pollOneByOne(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	a.batch, b.batch = 1, 1
	var ws []*work
	for i := range 40 {
		ws = append(ws, a.send(1, 8, i))
	}
	for i, w := range ws { // as many as go without the receiver
		if _, err := a.offer([]*work{w}); err != nil {
			ws = ws[:i]
			break
		}
	}
	r.until("all messages and completions have arrived, one each Poll", func() bool { return len(b.arrived) == len(ws) && a.open == 0 })
	for i, w := range ws {
		if err := differ(b.arrived[i].data, w.text); err != nil {
			r.t.Fatalf("message %d of %d: %v", i, len(ws), err)
		}
	}
}

func pollWithoutRoom(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	w := a.send(1, 8, 200)
	r.post(a, w)
	for range 100 {
		for _, n := range r.nodes {
			for _, out := range [][]rdma.Completion{nil, {}} {
				p := n.portTo(1 - n.index)
				if k := p.recvCQ.Poll(out); k != 0 {
					r.t.Fatalf("Poll without room says it gave %d", k)
				}
			}
		}
	}
	r.until("the message and the completion are still there", func() bool { return len(b.arrived) == 1 && w.done })
	if err := differ(b.arrived[0].data, w.text); err != nil {
		r.t.Error(err)
	}
}

func pollTwoQueues(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	r.post(a, a.send(1, 8, 50))
	r.post(b, b.send(0, 8, 50))
	var out [8]rdma.Completion
	r.until("each node has its completion on one queue and its message on the other", func() bool {
		for _, n := range r.nodes {
			p := n.portTo(1 - n.index)
			for _, side := range []struct {
				cq   rdma.CQ
				name string
				recv bool
			}{{p.sendCQ, "SendCQ", false}, {p.recvCQ, "RecvCQ", true}} {
				k := n.pollQueue(p, side.cq, out[:])
				for _, c := range out[:k] {
					if (c.Op == rdma.OpRecv) != side.recv {
						r.t.Fatalf("node %d: a %v completes on its %s", n.index, c.Op, side.name)
					}
				}
			}
		}
		return len(a.arrived) == 1 && len(b.arrived) == 1 && a.open+b.open == 0
	})
}
