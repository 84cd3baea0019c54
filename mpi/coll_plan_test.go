package mpi

// The schedule cache of a communicator: reuse, distinction and bounds.

import (
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
)

// alone returns a world of one rank, whose collectives send nothing.
func alone(t *testing.T) *Comm {
	t.Helper()
	worlds, err := Local(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := worlds[0].Finalize(); err != nil {
			t.Error(err)
		}
	})
	return worlds[0].Comm()
}

// planFor looks a call up as the call itself does.
func planFor(t *testing.T, c *Comm, k collCall) *plan {
	t.Helper()
	defer c.e.Hold().Release()
	p, err := c.planLocked(&k)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlansAreFoundAgain(t *testing.T) {
	c := alone(t)
	calls := map[string]collCall{
		"bcast of 8":           {key: planKey{kind: coll.Bcast, elem: 1, bytes: 8}},
		"bcast of 9":           {key: planKey{kind: coll.Bcast, elem: 1, bytes: 9}},
		"allreduce":            {key: planKey{kind: coll.Allreduce, elem: 8, bytes: 8}},
		"allreduce in order":   {key: planKey{kind: coll.Allreduce, elem: 8, bytes: 8, ordered: true}},
		"allreduce in place":   {key: planKey{kind: coll.Allreduce, elem: 8, bytes: 8, inPlace: true}},
		"allgatherv of 1":      {key: planKey{kind: coll.Allgather, elem: 8, irregular: true}, recvCounts: []int{1}},
		"allgatherv of 2":      {key: planKey{kind: coll.Allgather, elem: 8, irregular: true}, recvCounts: []int{2}},
		"allgatherv of 2 at 3": {key: planKey{kind: coll.Allgather, elem: 8, irregular: true}, recvCounts: []int{2}, recvDispls: []int{3}},
	}
	first := map[string]*plan{}
	for name, k := range calls {
		first[name] = planFor(t, c, k)
		for other, p := range first {
			if other != name && p == first[name] {
				t.Errorf("%s and %s have the same plan", name, other)
			}
		}
	}
	for range 3 {
		for name, k := range calls {
			if planFor(t, c, k) != first[name] {
				t.Errorf("the plan of %s was not found again", name)
			}
		}
	}
	// The plan has its own copy of the counts: a program may change its slice.
	mine := []int{5}
	k := collCall{key: planKey{kind: coll.Allgather, elem: 8, irregular: true}, recvCounts: mine}
	p := planFor(t, c, k)
	mine[0] = 6
	if planFor(t, c, k) == p {
		t.Error("a plan for blocks of 5 was taken for blocks of 6")
	}
}

// Plans in use stay, however many others are added.
func TestPlansAreBounded(t *testing.T) {
	c := alone(t)
	often := collCall{key: planKey{kind: coll.Allreduce, elem: 8, bytes: 8}}
	p := planFor(t, c, often)
	for n := range 5 * keepPlans {
		planFor(t, c, collCall{key: planKey{kind: coll.Bcast, elem: 1, bytes: n}})
		if n%10 == 0 {
			// Another plan of the kind was used in between, so that all are searched.
			planFor(t, c, collCall{key: planKey{kind: coll.Allreduce, elem: 8, bytes: 16}})
			if planFor(t, c, often) != p {
				t.Fatalf("after %d other shapes a plan in use is gone", n)
			}
		}
	}
	ps := c.plans
	if len(ps.all) != keepPlans {
		t.Errorf("%d plans are kept, want %d", len(ps.all), keepPlans)
	}
	bytes := 0
	for _, q := range ps.all {
		bytes += q.graph.Bytes()
	}
	if bytes != ps.bytes {
		t.Errorf("the graphs of the plans have %d bytes, counted are %d", bytes, ps.bytes)
	}
	for kind, q := range ps.last {
		if q != nil && !slices.Contains(ps.all, q) {
			t.Errorf("the last plan of %s is not among those that are kept", coll.Kind(kind))
		}
	}
}
