package rdmatest

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
)

// Steady state: no allocations once a device is warm.

func steadyChecks() []check {
	const rule = "a device does not allocate in steady state"
	quiet := func(*rdma.Attr) string {
		if race.Enabled {
			return "the race detector allocates"
		}
		return ""
	}
	add := func(name string, ops rdma.OpSet, run func(*rig)) check {
		return check{name: name, rule: rule, on: reliable, ops: ops, unless: quiet, run: run}
	}
	return []check{
		add("steady-inline-send", 0, func(r *rig) { steadySend(r, rdma.Inline, min(8, r.nodes[0].attr.MaxInline)) }),
		add("steady-send", 0, func(r *rig) { steadySend(r, 0, min(2000, r.nodes[0].attr.MaxSend-8)) }),
		add("steady-read", rdma.Ops(rdma.OpRead), func(r *rig) { steadyAccess(r, rdma.OpRead) }),
		add("steady-write", rdma.Ops(rdma.OpWrite), func(r *rig) { steadyAccess(r, rdma.OpWrite) }),
		add("steady-pull", rdma.Ops(rdma.OpPull, rdma.OpPush), steadyPull),
		add("steady-register", 0, steadyRegister),
	}
}

// bare drives a node without the suite's bookkeeping, which allocates.
type bare struct {
	*rig
	out      []rdma.Completion
	wrs      []rdma.SendWR
	messages int
	done     int
	bad      rdma.Status
	deadline time.Time // of the current operation
}

func (r *rig) bare() *bare {
	return &bare{rig: r, out: make([]rdma.Completion, 16), wrs: make([]rdma.SendWR, 1)}
}

// postTo posts b.wrs[0] until it is accepted.
func (b *bare) postTo(n *node, to int) {
	b.wrs[0].Peer = n.peers[to]
	qp := n.portTo(to).qp
	for {
		k, err := qp.PostSend(b.wrs)
		if k == 1 {
			return
		}
		if !errors.Is(err, rdma.ErrAgain) {
			b.t.Fatalf("post %v: %v", b.wrs[0].Op, err)
		}
		b.pollAll()
	}
}

func (b *bare) pollAll() {
	for i, n := range b.nodes {
		k := n.portTo(1 - i).recvCQ.Poll(b.out)
		for j := range b.out[:k] {
			switch c := &b.out[j]; {
			case c.Status != rdma.StatusOK:
				b.bad = c.Status
			case c.Op == rdma.OpRecv:
				b.messages++
			default:
				b.done++
			}
		}
	}
	if b.bad != rdma.StatusOK || time.Now().After(b.deadline) {
		b.t.Fatalf("%d messages and %d completions have arrived, the last bad status is %v, after %v", b.messages, b.done, b.bad, b.hangTimeout)
	}
}

// allocates measures fn after a warm-up.
func (b *bare) allocates(what string, fn func()) {
	b.t.Helper()
	timed := func() {
		b.deadline = time.Now().Add(b.hangTimeout)
		fn()
	}
	for range 300 {
		timed()
	}
	runtime.GC()
	if got := testing.AllocsPerRun(300, timed); got != 0 {
		b.t.Errorf("%s makes %v allocations; it should make none", what, got)
	}
}

func steadySend(r *rig, flags rdma.Flags, size int) {
	b := r.bare()
	a := r.nodes[0]
	mem, lkey := a.memory(size)
	b.allocates("send and Poll", func() {
		b.messages, b.done = 0, 0
		b.wrs[0] = rdma.SendWR{ID: 1, Op: rdma.OpSend, Flags: flags, HeadLen: 8, Body: rdma.MemOf(mem), LKey: lkey}
		b.postTo(a, 1)
		for b.messages < 1 || flags == 0 && b.done < 1 {
			b.pollAll()
		}
	})
}

func steadyAccess(r *rig, op rdma.Op) {
	b := r.bare()
	a, target := r.nodes[0], r.nodes[1]
	mem, lkey := a.memory(3000)
	mr := target.register(make([]byte, 3000), rdma.RemoteRead|rdma.RemoteWrite)
	b.allocates(op.String(), func() {
		b.done = 0
		b.wrs[0] = rdma.SendWR{ID: 1, Op: op, Body: rdma.MemOf(mem), LKey: lkey, Remote: mr.Base, RKey: mr.RKey}
		b.postTo(a, 1)
		for b.done < 1 {
			b.pollAll()
		}
	})
}

func steadyPull(r *rig) {
	b := r.bare()
	puller, owner := r.nodes[0], r.nodes[1]
	mem, lkey := puller.memory(100000)
	region := make([]byte, 100000)
	b.allocates("a cooperative copy with its registration", func() {
		b.done = 0
		mr, err := owner.dev.Register(region, rdma.Cooperative)
		if err != nil {
			b.t.Fatal(err)
		}
		b.wrs[0] = rdma.SendWR{ID: 1, Op: rdma.OpPush, Body: rdma.MemOf(region), LKey: mr.LKey, RKey: mr.RKey}
		b.postTo(owner, 0)
		b.wrs[0] = rdma.SendWR{ID: 2, Op: rdma.OpPull, Body: rdma.MemOf(mem), LKey: lkey, Remote: mr.Base, RKey: mr.RKey}
		b.postTo(puller, 1)
		for b.done < 2 {
			b.pollAll()
		}
		if err := owner.dev.Deregister(mr); err != nil {
			b.t.Fatal(err)
		}
	})
}

func steadyRegister(r *rig) {
	b := r.bare()
	dev := r.nodes[0].dev
	mem := make([]byte, 10000)
	b.allocates("Register and Deregister", func() {
		mr, err := dev.Register(mem, rdma.RemoteRead|rdma.RemoteWrite)
		if err == nil {
			err = dev.Deregister(mr)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	})
}
