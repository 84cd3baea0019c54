package coll

import (
	"math"
	"testing"
)

// TestHostForms checks which form a communicator uses, and up to which size.
func TestHostForms(t *testing.T) {
	world := Placement{Ranks: 4, World: true, Board: true}
	change := func(f func(p *Placement)) Placement {
		p := world
		f(&p)
		return p
	}
	named := func(k Kind, name string) (n Named) {
		n[k] = name
		return n
	}
	for _, c := range []struct {
		what      string
		form      *HostForm
		placement Placement
		named     Named
		kind      Kind
		limit     int
		excluded  bool
	}{
		{"a core each", Segment, world, Named{}, Allreduce, 16 << 10, false},
		{"a core each", Segment, world, Named{}, Barrier, 0, false},
		{"a core each", Gate, world, Named{}, Barrier, -1, true},
		{"shared cores", Segment, change(func(p *Placement) { p.SharedCores = true }), Named{}, Allreduce, 256 << 10, false},
		{"shared cores", Gate, change(func(p *Placement) { p.SharedCores = true }), Named{}, Barrier, 0, false},
		{"shared cores: the gate precedes", Segment, change(func(p *Placement) { p.SharedCores = true }), Named{}, Barrier, -1, false},
		{"shared cores, part of the job", Segment, change(func(p *Placement) { p.SharedCores, p.World = true, false }), Named{}, Barrier, 0, false},
		{"no board", Gate, change(func(p *Placement) { p.SharedCores, p.Board = true, false }), Named{}, Barrier, -1, true},
		{"two hosts", Segment, change(func(p *Placement) { p.Apart = 2 }), Named{}, Bcast, -1, true},
		{"two hosts", NodePhases, change(func(p *Placement) { p.Apart = 2 }), Named{}, Allgather, SharedLimit, false},
		{"two hosts", NodePhases, change(func(p *Placement) { p.Apart = 2 }), Named{}, Bcast, -1, false},
		{"one host", NodePhases, world, Named{}, Allgather, -1, true},
		{"two groups", Segment, change(func(p *Placement) { p.TwoGroups = true }), Named{}, Bcast, -1, true},
		{"one rank", Segment, change(func(p *Placement) { p.Ranks = 1 }), Named{}, Bcast, -1, true},
		{"too many ranks", Segment, change(func(p *Placement) { p.Ranks = SegmentRanks + 1 }), Named{}, Bcast, -1, true},
		{"no shared memory", Segment, change(func(p *Placement) { p.NoSharedMemory = true }), Named{}, Bcast, -1, true},
		{"named", Segment, world, named(Bcast, "segment"), Bcast, math.MaxInt, false},
		{"another named", Segment, world, named(Bcast, "chain:segment=8192"), Bcast, -1, false},
		{"another kind named", Segment, world, named(Bcast, "chain"), Reduce, 16 << 10, false},
		{"named, but the gate precedes", Segment, change(func(p *Placement) { p.SharedCores = true }), named(Barrier, "segment"), Barrier, -1, false},
	} {
		limits, why := c.form.Limits(&c.placement, &c.named)
		if limits[c.kind] != c.limit || (why != "") != c.excluded {
			t.Errorf("%s: %s of %s up to %d (%s), want %d, excluded: %v", c.what, c.form.Name, c.kind, limits[c.kind], why, c.limit, c.excluded)
		}
	}
}
