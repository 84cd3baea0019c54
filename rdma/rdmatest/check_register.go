package rdmatest

import (
	"errors"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// Registration: keys, their reuse and deregistration.

func registerChecks() []check {
	read := rdma.Ops(rdma.OpRead)
	return []check{
		{name: "register-describes-memory", on: reliable, run: registerDescribes,
			rule: "an MR has the length of the memory and a key"},
		{name: "register-returns-new-keys", on: reliable, run: registerNewKeys,
			rule: "a deregistered key is not reused soon, even for the same memory"},
		{name: "register-many", on: reliable, ops: read, run: registerMany,
			rule: "many regions may be registered at once; when there is no more room, Register returns ErrNoResources"},
		{name: "register-overlapping", on: reliable, ops: read, run: registerOverlapping,
			rule: "the same memory may be registered several times, and ending one registration does not affect the others"},
		{name: "deregister-twice", on: reliable, run: deregisterTwice,
			rule: "a registration can be ended only once"},
	}
}

func registerDescribes(r *rig) {
	n := r.nodes[0]
	for _, size := range []int{1, 100, 4096, 1 << 20} {
		mr := n.register(make([]byte, size), rdma.RemoteRead)
		if mr.Len != uint64(size) || mr.RKey == 0 && mr.Base == 0 {
			r.t.Errorf("the registration of %d bytes is %+v", size, mr)
		}
		n.deregister(mr)
	}
}

func registerNewKeys(r *rig) {
	n := r.nodes[0]
	mem := make([]byte, 100)
	const span = 200 // a stale key must be detected for at least this long
	last := map[uint64]int{}
	for i := range 3000 {
		mr := n.register(mem, rdma.RemoteRead)
		if before, used := last[mr.RKey]; used && i-before < span {
			r.t.Fatalf("registration %d has the key %#x of registration %d", i, mr.RKey, before)
		}
		last[mr.RKey] = i
		n.deregister(mr)
	}
}

func registerMany(r *rig) {
	reader, owner := r.nodes[0], r.nodes[1]
	mem := newGuarded(64<<10, 0, 3)
	var mrs []rdma.MR
	for i := range 1500 {
		mr, err := owner.dev.Register(mem.mem[i:i+40], rdma.RemoteRead)
		if errors.Is(err, rdma.ErrNoResources) && i >= 64 {
			r.t.Logf("Register returns ErrNoResources after %d regions", i)
			break
		}
		if err != nil {
			r.t.Fatalf("region %d: %v", i, err)
		}
		mrs = append(mrs, mr)
	}
	here, lkey := reader.local(40, 0, 4)
	for _, i := range []int{0, 1, len(mrs) / 2, len(mrs) - 1} {
		w := reader.access(rdma.OpRead, 1, here.mem, lkey, mrs[i].Base, mrs[i].RKey)
		r.complete(reader, w, "the read has completed")
		if err := differ(here.mem, mem.mem[i:i+40]); err != nil || w.status != rdma.StatusOK {
			r.t.Errorf("read of region %d of %d: %v, %v", i, len(mrs), w.status, err)
		}
	}
	for _, mr := range mrs {
		owner.deregister(mr)
	}
	owner.deregister(owner.register(mem.mem, 0)) // there is room again
}

func registerOverlapping(r *rig) {
	reader, owner := r.nodes[0], r.nodes[1]
	mem := newGuarded(500, 0, 5)
	first, second := owner.register(mem.mem, rdma.RemoteRead), owner.register(mem.mem, rdma.RemoteRead)
	if first.RKey == second.RKey {
		r.t.Fatalf("two registrations of the same memory share the key %#x", first.RKey)
	}
	owner.deregister(first)
	here, lkey := reader.local(500, 0, 6)
	w := reader.access(rdma.OpRead, 1, here.mem, lkey, second.Base, second.RKey)
	r.complete(reader, w, "the read has completed")
	if err := differ(here.mem, slices.Clone(mem.mem)); err != nil || w.status != rdma.StatusOK {
		r.t.Errorf("read by the second registration after the first was ended: %v, %v", w.status, err)
	}
}

func deregisterTwice(r *rig) {
	n := r.nodes[0]
	mem := make([]byte, 100)
	mr := n.register(mem, rdma.RemoteRead)
	n.deregister(mr)
	if err := n.dev.Deregister(mr); err == nil {
		r.t.Error("a second Deregister of the same registration succeeds")
	}
	again := n.register(mem, rdma.RemoteRead)
	if err := n.dev.Deregister(mr); err == nil {
		r.t.Error("Deregister with an old MR succeeds after its slot was reused")
	}
	n.deregister(again)
}
