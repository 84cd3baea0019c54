package rdmatest

import (
	"fmt"
	"math"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// Accesses that must transfer no byte.

func refusalChecks() []check {
	const rule = "an access outside a registered region, with a wrong key, without the required access right, or after Deregister transfers no byte and completes with StatusRemoteAccess"
	var list []check
	for _, op := range []rdma.Op{rdma.OpRead, rdma.OpWrite, rdma.OpPull} {
		add := func(name string, forge func(t *trespass)) {
			peers := 3
			if name == "wrong-key" {
				peers = 2 + (64+fewGuesses-1)/fewGuesses
			}
			list = append(list, check{name: "refuse-" + op.String() + "-" + name, rule: rule, on: reliable, ops: rdma.Ops(op), peers: peers,
				run: func(r *rig) { refuse(r, op, forge) }})
		}
		add("beyond-the-end", func(t *trespass) {
			for _, by := range []uint64{1, 2, 8, 64, trespassSize, 1 << 20, 1 << 40} {
				t.at(t.mr.Base+t.mr.Len-trespassSize+by, t.mr.RKey, fmt.Sprintf("%d bytes beyond the end", by))
			}
		})
		add("before-the-start", func(t *trespass) {
			for _, by := range []uint64{1, 2, 8, 64, trespassSize, 1 << 20} {
				t.at(t.mr.Base-by, t.mr.RKey, fmt.Sprintf("%d bytes before the start", by))
			}
		})
		add("around-the-world", func(t *trespass) {
			for _, addr := range []uint64{0, 1, math.MaxUint64, math.MaxUint64 - trespassSize + 1, math.MaxUint64 - trespassSize, 1 << 63, t.mr.Base ^ 1<<63, t.mr.Base ^ 1<<47} {
				t.at(addr, t.mr.RKey, fmt.Sprintf("at address %#x", addr))
			}
		})
		add("wrong-key", func(t *trespass) {
			for bit := range 64 {
				if bit%fewGuesses == 0 {
					t.as(t.r.nodes[bit/fewGuesses+2])
				}
				t.at(t.mr.Base, t.mr.RKey^1<<bit, fmt.Sprintf("with bit %d of the key flipped", bit))
			}
			t.as(t.r.nodes[0])
			t.at(t.mr.Base, math.MaxUint64, "with a key of all ones")
			t.at(t.mr.Base, t.other.RKey, "with the key of a neighboring region")
			t.at(t.mr.Base, t.foreign.RKey, "with a key that belongs to the same memory at another peer")
		})
		add("missing-right", func(t *trespass) {
			for acc := range (rdma.RemoteRead | rdma.RemoteWrite | rdma.Cooperative) + 1 {
				if acc&rightFor(op) != 0 {
					continue
				}
				mr := t.owner.register(t.region.mem, acc)
				t.at(mr.Base, mr.RKey, fmt.Sprintf("with the rights %03b", acc))
				t.owner.deregister(mr)
			}
		})
		add("after-deregister", func(t *trespass) {
			mr := t.owner.register(t.region.mem, rightFor(op))
			t.owner.deregister(mr)
			t.at(mr.Base, mr.RKey, "after Deregister")
			again := t.owner.register(t.region.mem, rightFor(op))
			t.at(mr.Base, mr.RKey, "after Deregister, although the same memory is registered again")
			t.owner.deregister(again)
		})
	}
	return list
}

func rightFor(op rdma.Op) rdma.Access {
	switch op {
	case rdma.OpRead:
		return rdma.RemoteRead
	case rdma.OpWrite:
		return rdma.RemoteWrite
	}
	return rdma.Cooperative
}

const trespassSize = 40

// fewGuesses is the number of refused accesses of one peer that every device tolerates. A
// device may drop a peer that attempts many more (rdma.OpDisconnected).
const fewGuesses = 12

// trespass is a region that must not be modified, and a node that attempts to.
type trespass struct {
	r              *rig
	op             rdma.Op
	stranger       *node
	owner          *node
	region         *guarded
	here           *guarded
	lkey           uint32
	mr             rdma.MR // the region, with the access right
	other, foreign rdma.MR // other registered regions
}

// as selects the node that attempts the accesses.
func (t *trespass) as(n *node) {
	t.stranger = n
	t.here, t.lkey = n.local(trespassSize, 5, 2)
}

// at attempts an access and checks that it is refused and has no effect.
func (t *trespass) at(remote, rkey uint64, how string) {
	t.r.t.Helper()
	if rkey == t.mr.RKey && remote == t.mr.Base {
		return // not forged at all: the flipped bit has no effect
	}
	w := t.stranger.access(t.op, t.owner.index, t.here.mem, t.lkey, remote, rkey)
	t.r.complete(t.stranger, w, "the forged access has completed")
	if w.status != rdma.StatusRemoteAccess {
		t.r.t.Fatalf("a %v %s completes with %q; it should be %q", t.op, how, w.status, rdma.StatusRemoteAccess)
	}
	if err := t.region.checkUnchanged(); err != nil {
		t.r.t.Fatalf("a %v %s was refused, but the region: %v", t.op, how, err)
	}
	if err := t.here.checkUnchanged(); err != nil {
		t.r.t.Fatalf("a %v %s was refused, but Body: %v", t.op, how, err)
	}
}

func refuse(r *rig, op rdma.Op, forge func(*trespass)) {
	t := &trespass{r: r, op: op, owner: r.nodes[1], region: newGuarded(1000, 3, 1)}
	t.as(r.nodes[0])
	t.mr = t.owner.register(t.region.mem, rightFor(op))
	neighbor := make([]byte, 1000)
	t.other = t.owner.register(neighbor, rightFor(op))
	t.foreign = r.nodes[2].register(slices.Clone(t.region.mem), rightFor(op))
	forge(t)
	switch {
	case r.kind == rdma.RC, op == rdma.OpPull: // other checks cover successful pulls
		return
	case r.ends && len(r.nodes) > 3: // all nodes have attempted an access
		return
	case r.ends:
		t.as(r.nodes[2])
	}
	good := t.stranger.access(op, 1, t.here.mem, t.lkey, t.mr.Base+uint64(len(t.region.mem))-trespassSize, t.mr.RKey)
	r.complete(t.stranger, good, "a permitted access completes after forbidden ones")
	if good.status != rdma.StatusOK {
		r.t.Errorf("after refused accesses, a permitted one completes with %v", good.status)
	}
}
