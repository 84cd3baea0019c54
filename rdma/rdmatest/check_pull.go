package rdmatest

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// The cooperative copy, with its two halves posted in all orders.

func pullChecks() []check {
	const (
		rule  = "OpPull and OpPush complete when the last byte has arrived, with its count in Len, in whichever order they are posted"
		alone = "one side of a cooperative copy copies everything if the other does not poll"
	)
	ops := rdma.Ops(rdma.OpPull, rdma.OpPush)
	needsBoth := func(a *rdma.Attr) string {
		if a.RemoteCPU {
			return "the device needs both CPUs (Attr.RemoteCPU)"
		}
		return ""
	}
	return []check{
		{name: "pull-owner-first", rule: rule, on: reliable, ops: ops, run: pullSizes(pullOwnerFirst)},
		{name: "pull-puller-first", rule: rule, on: reliable, ops: ops, run: pullSizes(pullPullerFirst)},
		{name: "pull-before-push", rule: rule, on: reliable, ops: ops, run: pullSizes(pullBeforePush)},
		{name: "pull-puller-alone", rule: alone, on: reliable, ops: ops, unless: needsBoth, run: pullSizes(pullPullerAlone)},
		{name: "pull-owner-alone", rule: alone, on: reliable, ops: ops, unless: needsBoth, run: pullSizes(pullOwnerAlone)},
		{name: "pull-many", on: reliable, ops: ops, peers: 3, run: pullMany,
			rule: "many cooperative copies may be outstanding, and each half of each completes once"},
		{name: "pull-parallel", on: reliable, ops: ops, peers: 3, run: pullParallel,
			rule: "both sides of a cooperative copy may copy at the same time"},
		{name: "pull-abandoned", on: reliable, ops: ops, run: pullAbandoned,
			rule: "every accepted request completes once: Deregister ends an OpPush that was not pulled, without success"},
		{name: "pull-pending-pushes", on: reliable, ops: ops | rdma.Ops(rdma.OpRead, rdma.OpWrite), run: pullPendingPushes,
			rule: "a device accepts Attr.MaxPush OpPush, and requests posted after them are accepted and complete while no one pulls"},
	}
}

// joint is a cooperative copy of [lo, hi) of a region.
type joint struct {
	owner, puller *node
	region, here  *guarded
	lo, hi        int
	mr            rdma.MR
	push, pull    *work
	want          []byte
}

func (r *rig) newJoint(owner, puller *node, regionSize, lo, hi, skew int) *joint {
	r.t.Helper()
	j := &joint{owner: owner, puller: puller, lo: lo, hi: hi, region: newGuarded(regionSize, skew, r.random.next())}
	j.mr = owner.register(j.region.mem, rdma.Cooperative)
	j.push = owner.access(rdma.OpPush, puller.index, j.region.mem, j.mr.LKey, 0, j.mr.RKey)
	var lkey uint32
	j.here, lkey = puller.local(hi-lo, 7-skew, r.random.next())
	j.pull = puller.access(rdma.OpPull, owner.index, j.here.mem, lkey, j.mr.Base+uint64(lo), j.mr.RKey)
	j.want = slices.Clone(j.region.mem[lo:hi])
	return j
}

// arrivedAll checks that all bytes have arrived at the puller and no others were modified.
func (j *joint) arrivedAll() error {
	if err := j.region.checkUnchanged(); err != nil {
		return fmt.Errorf("the region of a copy: %w", err)
	}
	if err := j.here.changedOnly(0, j.hi-j.lo, j.want); err != nil {
		return fmt.Errorf("%d bytes pulled from offset %d of %d: %w", j.hi-j.lo, j.lo, len(j.region.mem), err)
	}
	return nil
}

// end checks both completions and the bytes, and ends the registration.
func (j *joint) end(r *rig) {
	r.t.Helper()
	for _, w := range []*work{j.pull, j.push} {
		if w.status != rdma.StatusOK || w.length != uint64(j.hi-j.lo) {
			r.t.Fatalf("%v of a copy of %d bytes completes with %v and Len %d", w.op, j.hi-j.lo, w.status, w.length)
		}
	}
	if err := j.arrivedAll(); err != nil {
		r.t.Fatal(err)
	}
	j.owner.deregister(j.mr)
}

// pullSizes runs an order of events for all sizes and for partial pulls.
func pullSizes(order func(*rig, *joint)) func(*rig) {
	return func(r *rig) {
		for i, c := range []struct{ region, lo, hi int }{
			{1, 0, 1}, {100, 0, 100}, {4096, 0, 4096}, {4097, 0, 4097}, {100000, 0, 100000}, {2<<20 + 5, 0, 2<<20 + 5},
			{100, 0, 0}, {70000, 0, 0}, // empty pulls
			{100, 0, 60}, {100, 31, 97}, {300000, 0, 100001}, {300000, 12345, 299999}, {1 << 20, 1 << 19, 1<<19 + 1}, // partial pulls
		} {
			j := r.newJoint(r.nodes[i%2], r.nodes[1-i%2], c.region, c.lo, c.hi, i%8)
			order(r, j)
			r.pollUntil("both halves have completed", func() bool { return j.pull.done && j.push.done })
			j.end(r)
		}
		r.settle()
	}
}

func pullOwnerFirst(r *rig, j *joint) {
	r.post(j.owner, j.push)
	r.settle()
	if j.push.done {
		r.t.Fatalf("OpPush completes with %v before the pull", j.push.status)
	}
	r.post(j.puller, j.pull)
}

// pullPullerFirst lets the puller begin; how far it gets alone is unspecified.
func pullPullerFirst(r *rig, j *joint) {
	r.post(j.puller, j.pull)
	r.step(j.puller)
	r.post(j.owner, j.push)
}

// pullBeforePush lets the puller finish, if it can, before the owner pushes.
func pullBeforePush(r *rig, j *joint) {
	r.post(j.puller, j.pull)
	for range 2000 {
		r.step(j.puller)
		if j.pull.done {
			break
		}
	}
	r.post(j.owner, j.push)
}

func pullPullerAlone(r *rig, j *joint) {
	r.post(j.owner, j.push)
	r.post(j.puller, j.pull)
	r.pollUntil("the pull has completed while the owner does not poll", func() bool { return j.pull.done }, j.puller)
	if err := j.arrivedAll(); err != nil {
		r.t.Fatal(err)
	}
}

func pullOwnerAlone(r *rig, j *joint) {
	r.post(j.owner, j.push)
	r.post(j.puller, j.pull)
	r.pollUntil("the push has completed while the puller does not poll", func() bool { return j.push.done }, j.owner)
	if err := j.arrivedAll(); err != nil {
		r.t.Fatalf("OpPush has completed, but: %v", err)
	}
	spoil(j.region.mem) // the region belongs to the owner again
	j.region.mark()
}

// someJoints prepares copies between all pairs, in both directions.
func someJoints(r *rig, count int) []*joint {
	var list []*joint
	for i := range count {
		owner := r.nodes[i%len(r.nodes)]
		puller := r.nodes[(i+1+i/3%2)%len(r.nodes)]
		size := 1 + r.random.intBelow(1<<(4+r.random.intBelow(14)))
		lo := r.random.intBelow(size)
		list = append(list, r.newJoint(owner, puller, size, lo, lo+r.random.intBelow(size-lo+1), i%8))
	}
	return list
}

// pullMany posts all halves in a random order while all nodes poll.
func pullMany(r *rig) {
	list := someJoints(r, 40)
	type half struct {
		n *node
		w *work
	}
	var halves []half
	for _, j := range list {
		halves = append(halves, half{j.owner, j.push}, half{j.puller, j.pull})
	}
	for i := range halves {
		k := i + r.random.intBelow(len(halves)-i)
		halves[i], halves[k] = halves[k], halves[i]
		r.post(halves[i].n, halves[i].w)
		if r.random.intBelow(3) == 0 {
			r.step()
		}
	}
	r.pollUntil("both halves of all copies have completed", func() bool {
		return r.nodes[0].open+r.nodes[1].open+r.nodes[2].open == 0
	})
	for _, j := range list {
		j.end(r)
	}
}

// pullParallel does the same from one goroutine per node, with larger copies so that both
// sides copy concurrently.
func pullParallel(r *rig) {
	list := someJoints(r, 30)
	for i := range 3 {
		list = append(list, r.newJoint(r.nodes[i], r.nodes[(i+1)%3], 2<<20, 1, 2<<20, i))
	}
	todo := make([][]*work, len(r.nodes))
	for _, j := range list {
		todo[j.owner.index] = append(todo[j.owner.index], j.push)
		todo[j.puller.index] = append(todo[j.puller.index], j.pull)
	}
	r.offerInParallel(todo)
	for _, j := range list {
		j.end(r)
	}
}

// pullPendingPushes posts as many pushes as the device accepts, then more other requests
// than the queue is deep. The pulls follow, last first.
func pullPendingPushes(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	if a.attr.MaxPush < 1 {
		r.t.Fatalf("the device has OpPush, but Attr.MaxPush is %d", a.attr.MaxPush)
	}
	var list []*joint
	for i := range a.attr.MaxPush {
		j := r.newJoint(a, b, 100+i, 0, 100+i, i%8)
		if k, err := a.offer([]*work{j.push}); k != 1 || err != nil {
			r.t.Fatalf("Attr.MaxPush is %d, but for OpPush number %d PostSend accepts %d and returns %v", a.attr.MaxPush, i+1, k, err)
		}
		list = append(list, j)
	}
	r.settle()
	there := newGuarded(5000, 0, r.random.next())
	mr := b.register(there.mem, rdma.RemoteRead|rdma.RemoteWrite)
	from, fromKey := a.local(5000, 3, r.random.next())
	to, toKey := a.local(5000, 5, r.random.next())
	for i := range 300 {
		r.post(a, a.send(1, 8, i%64), a.sendInline(1, 8, i%64),
			a.access(rdma.OpWrite, 1, from.mem, fromKey, mr.Base, mr.RKey),
			a.access(rdma.OpRead, 1, to.mem, toKey, mr.Base, mr.RKey))
	}
	r.pollUntil("the requests posted after pending OpPush have completed", func() bool { return a.open == len(list) })
	for i := range list {
		j := list[len(list)-1-i]
		if j.push.done {
			r.t.Fatalf("OpPush completes with %v before the pull", j.push.status)
		}
		r.post(b, j.pull)
		r.pollUntil("both halves have completed", func() bool { return j.pull.done && j.push.done })
		j.end(r)
	}
	r.settle()
}

func pullAbandoned(r *rig) {
	j := r.newJoint(r.nodes[0], r.nodes[1], 50000, 0, 50000, 0)
	r.post(j.owner, j.push)
	r.settle()
	j.owner.deregister(j.mr)
	r.pollUntil("the push of a region that was deregistered has completed", func() bool { return j.push.done })
	if j.push.status == rdma.StatusOK {
		r.t.Error("an OpPush that was not pulled completes with success")
	}
	r.complete(j.puller, j.pull, "the late pull has completed")
	if j.pull.status != rdma.StatusRemoteAccess {
		r.t.Errorf("a pull after Deregister completes with %v", j.pull.status)
	}
	r.settle()
}
