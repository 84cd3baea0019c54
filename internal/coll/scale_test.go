package coll

import (
	"runtime"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/sched"
)

// Limits of the plan of one rank in a job of a million: the choice of an algorithm, the
// schedule, and what is allocated to build it. The time is many times what is measured,
// because tests run beside others.
const (
	scaleRanks = 1_000_000
	scalePlan  = time.Second
	scaleBytes = 64 << 10
	scaleBuild = 1 << 20
)

// scaleModel is about that of mpi for several nodes with two rails.
var scaleModel = Model{Startup: 5e-6, PerByte: 0.3e-9, Copy: 0.06e-9, Reduce: 0.021e-9, Ports: 2, Starts: 4,
	Eager: 12 << 10, Stripe: 8 << 10, Near: Near{300e-9, 0.13e-9}}

// TestPlanOfAMillionRanks checks the choice and the schedule of the calls that programs of
// any size make.
func TestPlanOfAMillionRanks(t *testing.T) {
	nodes := TopologyOf(scaleRanks, func(rank int) int { return rank / 64 }, 2)
	blocks := Blocks{Each: 8}
	for _, s := range []Shape{
		{Kind: Barrier},
		{Kind: Allreduce, Bytes: 8, Elem: 8, Commutes: true},
		{Kind: Bcast, Bytes: 8},
		{Kind: Allgather, Recv: blocks},
		{Kind: Alltoall, Send: blocks, Recv: blocks},
	} {
		for _, s.Rank = range []int{0, 64, 333_333, scaleRanks - 1} {
			s.Size, s.Nodes = scaleRanks, nodes
			began := time.Now()
			choice, err := Choose(&s, &scaleModel, nil)
			if err != nil {
				t.Fatal(err)
			}
			chosen := time.Since(began)
			g, bytes, built := planned(t, choice.Algorithm, &s, choice.Params)
			t.Logf("%s by %s %v, rank %d: chosen in %v, %d operations built in %v, %d bytes, %d allocated", s.Kind, choice.Algorithm.Name,
				choice.Params, s.Rank, chosen, g.Len(), built, g.Bytes(), bytes)
			if g.Bytes() > scaleBytes || bytes > scaleBuild || chosen+built > scalePlan {
				t.Errorf("%s by %s: %d bytes, %d allocated, in %v on rank %d; want at most %d, %d and %v", s.Kind, choice.Algorithm.Name,
					g.Bytes(), bytes, chosen+built, s.Rank, scaleBytes, scaleBuild, scalePlan)
			}
		}
	}
}

// TestGeneratedHoldsLittle checks that the generated forms hold the same for any number of
// ranks.
func TestGeneratedHoldsLittle(t *testing.T) {
	for _, a := range Algorithms() {
		if a.Generate == nil {
			continue
		}
		s := Shape{Kind: a.Kind, Rank: 777_777, Size: scaleRanks, Send: Blocks{Each: 8}, Recv: Blocks{Each: 8}}
		g, bytes, took := planned(t, &a, &s, a.Default())
		t.Logf("%s by %s: %d operations, %d bytes, %v", a.Kind, a.Name, g.Len(), bytes, took)
		if !g.Generated() || bytes > 4<<10 || took > scalePlan {
			t.Errorf("%s by %s: generated is %v, %d bytes, %v; want at most 4096 bytes and %v", a.Kind, a.Name, g.Generated(), bytes, took, scalePlan)
		}
	}
}

// planned builds a graph and returns what it allocates and how long it takes.
func planned(t *testing.T, a *Algorithm, s *Shape, params []int) (g *sched.Graph, bytes int, took time.Duration) {
	t.Helper()
	var b sched.Builder
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	g, err := a.Graph(&b, s, params)
	took = time.Since(began)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	return g, int(after.TotalAlloc - before.TotalAlloc), took
}
