package rdmatest

import (
	"errors"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Closing.

func closeChecks() []check {
	return []check{
		{name: "close-twice", on: all, run: func(r *rig) { closeTwice(r, false) },
			rule: "closing an object twice is harmless"},
		{name: "close-device-first", on: all, run: func(r *rig) { closeTwice(r, true) },
			rule: "closing a device closes the objects made with it, and closing those again is harmless"},
		{name: "close-ends-use", on: all, run: closeEndsUse,
			rule: "calls on a closed object return ErrClosed at once"},
		{name: "close-completes-all", on: reliable, run: closeCompletesAll,
			rule: "an accepted request completes once even if its queue pair is closed first, then with StatusFlushed"},
		{name: "close-ends-access", on: reliable, ops: rdma.Ops(rdma.OpRead, rdma.OpWrite), run: closeEndsAccess,
			rule: "closing a device ends its registrations, and accesses to it do not hang"},
	}
}

// closers returns the Close methods of all objects of a node, queue pairs first.
func (n *node) closers() (names []string, fns []func() error) {
	add := func(name string, fn func() error) { names, fns = append(names, name), append(fns, fn) }
	for _, p := range n.ports {
		if p == nil {
			continue
		}
		add("queue pair", p.qp.Close)
		add("shared receive queue", p.srq.Close)
		add("completion queue", p.recvCQ.Close)
	}
	add("device", n.dev.Close)
	return names, fns
}

func closeTwice(r *rig, deviceFirst bool) {
	r.exchangeSome()
	for _, n := range r.nodes {
		if deviceFirst {
			if err := n.dev.Close(); err != nil {
				r.t.Errorf("close the device of node %d: %v", n.index, err)
			}
		}
		names, fns := n.closers()
		for i, closeIt := range fns {
			first, second := closeIt(), closeIt()
			if first != nil && !(deviceFirst && errors.Is(first, rdma.ErrClosed)) {
				r.t.Errorf("close the %s of node %d: %v", names[i], n.index, first)
			}
			if second != nil && !errors.Is(second, rdma.ErrClosed) {
				r.t.Errorf("close the %s of node %d again: %v", names[i], n.index, second)
			}
		}
	}
}

// exchangeSome creates traffic, some of it polled, some not.
func (r *rig) exchangeSome() {
	r.t.Helper()
	if r.kind != rdma.UD {
		r.exchangeOnce()
	}
	for _, n := range r.nodes {
		to := (n.index + 1) % len(r.nodes)
		r.post(n, n.sendInline(to, 8, 0))
	}
}

func closeEndsUse(r *rig) {
	n := r.nodes[0]
	n.works = map[uint64]*work{}
	if err := n.portTo(1).qp.Close(); err != nil {
		r.t.Fatalf("close a queue pair: %v", err)
	}
	if k, err := n.offer([]*work{n.sendInline(1, 8, 0)}); k != 0 || !errors.Is(err, rdma.ErrClosed) {
		r.t.Errorf("PostSend on a closed queue pair accepts %d and returns %v", k, err)
	}
	if err := n.dev.Close(); err != nil {
		r.t.Fatalf("close a device: %v", err)
	}
	if _, err := n.dev.Register(make([]byte, 100), rdma.RemoteRead); !errors.Is(err, rdma.ErrClosed) {
		r.t.Errorf("Register with a closed device returns %v", err)
	}
	if _, err := n.dev.NewCQ(16); !errors.Is(err, rdma.ErrClosed) {
		r.t.Errorf("NewCQ of a closed device returns %v", err)
	}
	cq := n.portTo(1).recvCQ
	if k := cq.Poll(make([]rdma.Completion, 8)); k != 0 {
		r.t.Errorf("Poll of a closed device returns %d completions", k)
	}
	cq.Wake() // must be harmless
	start := time.Now()
	_ = cq.Wait(r.hangTimeout) // it may return an error, but must return at once
	if took := time.Since(start); took > r.hangTimeout/2 {
		r.t.Errorf("Wait on a closed device lasts %v", took)
	}
}

func closeCompletesAll(r *rig) {
	a := r.nodes[0]
	var ws []*work
	for range 3000 { // to a peer that does not poll
		w := a.send(1, 8, 2000)
		if _, err := a.offer([]*work{w}); err != nil {
			break
		}
		ws = append(ws, w)
	}
	if err := a.portTo(1).qp.Close(); err != nil {
		r.t.Fatalf("close a queue pair with outstanding work: %v", err)
	}
	r.pollUntil("every send that was accepted has completed", func() bool { return a.open == 0 }, a)
	for i, w := range ws {
		if w.status != rdma.StatusOK && w.status != rdma.StatusFlushed {
			r.t.Fatalf("send %d of %d, outstanding when its queue pair was closed, completes with %v", i, len(ws), w.status)
		}
	}
	r.settle()
}

func closeEndsAccess(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	mem := newGuarded(1000, 0, 1)
	mr := b.register(mem.mem, rdma.RemoteRead|rdma.RemoteWrite)
	if err := b.dev.Close(); err != nil {
		r.t.Fatal(err)
	}
	here, lkey := a.local(1000, 0, 2)
	for _, op := range []rdma.Op{rdma.OpRead, rdma.OpWrite} {
		w := a.access(op, 1, here.mem, lkey, mr.Base, mr.RKey)
		if _, err := a.offer([]*work{w}); err != nil {
			if errors.Is(err, rdma.ErrAgain) {
				r.t.Errorf("a %v to a closed device returns ErrAgain", op)
			}
			continue // refused at once, which is fine
		}
		r.pollUntil("the access to a closed device has completed", func() bool { return w.done }, a)
		if w.status == rdma.StatusOK {
			r.t.Errorf("a %v to a closed device succeeds", op)
		}
		if err := errors.Join(mem.checkUnchanged(), here.checkUnchanged()); err != nil {
			r.t.Errorf("a %v to a closed device: %v", op, err)
		}
	}
	// Messages to it may be lost, but must not harm the sender.
	for _, w := range []*work{a.sendInline(1, 8, 0), a.send(1, 8, 100)} {
		if _, err := a.offer([]*work{w}); err == nil && !w.inline {
			r.pollUntil("the send to a closed device has completed", func() bool { return w.done }, a)
		}
	}
}
