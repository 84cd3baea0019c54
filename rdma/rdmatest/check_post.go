package rdmatest

import (
	"errors"

	"github.com/muster-mpi/muster/rdma"
)

// PostSend and Poll at their limits.

func postChecks() []check {
	return []check{
		{name: "post-takes-a-prefix", on: reliable, peers: 3, run: postTakesPrefix,
			rule: "PostSend never blocks, accepts a prefix of the list, in order, and returns ErrAgain for the rest, which may be posted again after a Poll"},
		{name: "post-unknown-op", on: reliable, run: postUnknownOp,
			rule: "PostSend returns ErrUnsupported for an operation that the device lacks, and accepts the requests before it in the list"},
		{name: "post-too-long", on: reliable, run: postTooLong,
			rule: "a message longer than Attr.MaxSend, or an inline body longer than Attr.MaxInline, is rejected and nothing of it arrives"},
		{name: "post-nothing", on: all, run: postNothing,
			rule: "posting an empty list is not an error"},
		{name: "poll-one-by-one", on: reliable, run: pollOneByOne,
			rule: "Poll returns as much as fits and keeps the rest"},
		{name: "poll-without-room", on: reliable, run: pollWithoutRoom,
			rule: "a Poll with no room makes progress and loses nothing"},
		{name: "poll-two-queues", on: reliable, queues: queueConfig{split: true}, run: pollTwoQueues,
			rule: "sends complete on SendCQ and messages arrive on RecvCQ"},
	}
}

// postTakesPrefix posts to peers that do not poll, with lists that mix both peers, until
// the device accepts no more. Everything that it accepted must then arrive.
func postTakesPrefix(r *rig) {
	a := r.nodes[0]
	const most = 3000 // a device without limits is valid too
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
				r.t.Fatalf("a full queue must return ErrAgain, not: %v", err)
			}
			refused++
		}
		for _, w := range list[:k] {
			taken[w.to] = append(taken[w.to], w)
		}
		offered += len(list)
	}
	r.t.Logf("accepted %d for node 1 and %d for node 2, and returned ErrAgain %d times", len(taken[1]), len(taken[2]), refused)
	r.pollUntil("everything that was accepted has arrived", func() bool {
		return len(r.nodes[1].arrived) >= len(taken[1]) && len(r.nodes[2].arrived) >= len(taken[2])
	})
	r.settle()
	for to := 1; to <= 2; to++ {
		got := r.nodes[to].arrived
		if len(got) != len(taken[to]) {
			r.t.Fatalf("PostSend accepted %d messages for node %d, and %d arrived", len(taken[to]), to, len(got))
		}
		for i, w := range taken[to] {
			if err := differ(got[i].data, w.text); err != nil {
				r.t.Fatalf("message %d for node %d: %v", i, to, err)
			}
		}
	}
	r.post(a, a.sendInline(1, 1, 0)) // the queue accepts requests again
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
		var k int
		var err error
		r.pollUntil("the queue has room", func() bool {
			k, err = a.offer(list)
			return k > 0 || !errors.Is(err, rdma.ErrAgain)
		})
		if k != 1 || !errors.Is(err, rdma.ErrUnsupported) {
			r.t.Fatalf("a list of a send, a %v and a send: PostSend accepts %d and returns %v; it should accept 1 and return ErrUnsupported", op, k, err)
		}
		r.pollUntil("the send before the refused operation has arrived", func() bool { return len(b.arrived) > i })
	}
	r.settle()
	if len(b.arrived) != len(unknown) {
		r.t.Errorf("%d messages arrived of %d that were accepted", len(b.arrived), len(unknown))
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
		r.pollUntil("the send that was accepted, but is too long, completes", func() bool { return w.done })
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
	for i, w := range ws { // as many as possible without the receiver
		if _, err := a.offer([]*work{w}); err != nil {
			ws = ws[:i]
			break
		}
	}
	r.pollUntil("all messages and completions have arrived, one per Poll", func() bool { return len(b.arrived) == len(ws) && a.open == 0 })
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
					r.t.Fatalf("Poll without room returned %d", k)
				}
			}
		}
	}
	r.pollUntil("the message and the completion were not lost", func() bool { return len(b.arrived) == 1 && w.done })
	if err := differ(b.arrived[0].data, w.text); err != nil {
		r.t.Error(err)
	}
}

func pollTwoQueues(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	r.post(a, a.send(1, 8, 50))
	r.post(b, b.send(0, 8, 50))
	var out [8]rdma.Completion
	r.pollUntil("each node has its completion on one queue and its message on the other", func() bool {
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
