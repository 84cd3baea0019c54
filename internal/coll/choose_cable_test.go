package coll

import (
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// The choice of algorithms where the rate of the cables is known. The model is that of a lab:
// ranks that share few cores, and two rails, each rank with its connections over one of them.

func labModel(mbit float64) *Model {
	return &Model{Startup: 30e-6, PerByte: 1.57e-9, Reduce: 0.021e-9, Copy: 0.06e-9, Ports: 1, Cables: 2, Starts: 16, Eager: 64 << 10,
		Cable: 8 / (mbit * 1e6), TimeSlices: true, Message: 6e-6, Near: Near{Startup: 8e-6, PerByte: 0.13e-9}}
}

func TestChooseOnCables(t *testing.T) {
	four := Consecutive(2, 4, 4, 4, 4)
	for _, c := range []struct {
		kind  Kind
		bytes int
		mbit  float64
		want  string
	}{
		{Gather, 256, 1000, "node-direct"},
		{Gather, 4 << 10, 1000, "linear"},
		{Gather, 16 << 10, 1000, "linear"},
		{Gather, 64 << 10, 1000, "linear"},
		{Alltoall, 16, 1000, "node-carriers"},
		{Alltoall, 256, 1000, "node-carriers"},
		{Alltoall, 1 << 10, 1000, "node-columns"},
		{Alltoall, 2 << 10, 1000, "node-columns"},
		{Alltoall, 4 << 10, 1000, "node-columns"},
		{Alltoall, 8 << 10, 1000, "node-columns"},
		{Alltoall, 64 << 10, 1000, "direct"},
		{Alltoall, 1 << 20, 1000, "node-columns"},
		{Alltoall, 4 << 10, 100, "node-columns"},
		{Alltoall, 16 << 10, 100, "pairwise"},
		{Bcast, 4 << 10, 1000, "node-knomial"},
		{Bcast, 64 << 10, 1000, "node-chain"},
		{Bcast, 1 << 20, 1000, "node-chain"},
		{Reduce, 8, 1000, papShmDirect},
		{Reduce, 64 << 10, 1000, "node-columns"},
		{Reduce, 1 << 20, 1000, "node-columns"},
		{Reduce, 8 << 20, 1000, "node-columns"},
		{Reduce, 1 << 20, 100, "node-columns"},
		{Scan, 8 << 10, 1000, "linear"},
		{Scan, 64 << 10, 1000, "chain"},
		{Scan, 1 << 20, 1000, "chain"},
		{Exscan, 64 << 10, 1000, "chain"},
		{Allreduce, 8, 1000, papShmDirect},
		{Allreduce, 32 << 10, 1000, "node-circulant"},
		{Allreduce, 64 << 10, 1000, "node-columns"},
		{Allreduce, 256 << 10, 1000, "node-columns"},
		{Allreduce, 1 << 20, 1000, "node-columns"},
		{Allreduce, 64 << 10, 100, "node-columns"},
		{Allreduce, 1 << 20, 100, "node-columns"},
	} {
		got, err := Choose(onNodes(c.kind, c.bytes, four), labModel(c.mbit), nil)
		if err != nil || got.Algorithm.Name != c.want {
			t.Errorf("%s of %d bytes at %g Mbit/s: %s %v, %v; want %s; ranking %v", c.kind, c.bytes, c.mbit, got.Algorithm.Name, got.Params, err, c.want, brief(got.Ranking))
		}
	}
}

// TestChooseReduceScatterOnCables checks that the ranks beyond a power of two, which do not
// take part in the halving, do not count where ranks share cores.
func TestChooseReduceScatterOnCables(t *testing.T) {
	for _, bytes := range []int{16, 64, 512} { // of a block
		got, err := Choose(onNodes(ReduceScatter, bytes, Consecutive(2, 4, 4, 3, 3)), labModel(1000), nil)
		if err != nil || got.Algorithm.Name != "recursive-halving" {
			t.Errorf("blocks of %d bytes: %s, %v; want recursive-halving; ranking %v", bytes, got.Algorithm.Name, err, brief(got.Ranking))
		}
	}
}

// TestBcastRadixOnCables checks that a broadcast to few nodes uses one level while a time
// slice costs more than sending the bytes again.
func TestBcastRadixOnCables(t *testing.T) {
	for bytes, radix := range map[int]int{1 << 10: 4, 64 << 10: 2, 1 << 20: 2} {
		for _, r := range rank(onNodes(Bcast, bytes, Consecutive(2, 4, 4, 4, 4)), labModel(1000)) {
			if r.Algorithm.Name == "node-knomial" && r.Params[0] != radix {
				t.Errorf("%d bytes: radix %d, want %d", bytes, r.Params[0], radix)
			}
		}
	}
}

// TestFarShare checks the shares of bytes that leave a node against the schedules.
func TestFarShare(t *testing.T) {
	four := Consecutive(1, 4, 4, 4, 4)
	for _, a := range Algorithms() {
		if a.Far == nil {
			continue
		}
		s := onNodes(a.Kind, 64<<10, four)
		s.Send.Each = 4 << 10
		far, all := 0, 0
		for r := range s.Size {
			mine := *s
			mine.Rank = r
			var b sched.Builder
			g, err := a.Graph(&b, &mine, a.Default())
			if err != nil {
				t.Fatal(err)
			}
			for _, op := range g.Ops {
				if op.Kind == sched.Send {
					all += op.Src.Len
					if four.NodeOf(int(op.Peer)) != four.NodeOf(r) {
						far += op.Src.Len
					}
				}
			}
		}
		if got, want := a.Far(s, a.Default()), float64(far)/float64(all); got < 0.6*want || got > 1.5*want {
			t.Errorf("%s by %s: %.2f of its bytes leave a node by the estimate, %.2f by the schedule", a.Kind, a.Name, got, want)
		}
	}
}
