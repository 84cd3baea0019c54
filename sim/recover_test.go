package sim

import (
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
)

// TestRecover checks that the ranks that are left agree and repeat the call.
func TestRecover(t *testing.T) {
	a := find(t, coll.Barrier, "dissemination")
	barrier := func(ranks int, nodes *coll.Topology) (Call, error) {
		return Call{Algorithm: a, Shape: shape(coll.Barrier, ranks, 0, nodes)}, nil
	}
	for _, failed := range []int{0, 1, 5, 39} {
		for _, nodes := range []*coll.Topology{nil, Layout(40, 4, 1), Layout(40, 40, 1)} {
			call, _ := barrier(40, nodes)
			x, err := Recover(plain(), call, Failure{Rank: failed, Notice: 1e6}, barrier)
			if err != nil {
				t.Fatalf("rank %d: %v", failed, err)
			}
			if x.Noticed != 1000 || x.Shrunk <= x.Noticed || x.Repeated <= x.Shrunk || x.Call.Ranks != 39 {
				t.Errorf("rank %d: %+v, want 39 ranks that agree after they have noticed, and then repeat the call", failed, x)
			}
			// Two agreements of four passes; a rank that knows of the failure late gets some twice.
			if least := int64(2 * 4 * 38); x.Notes < least || x.Notes > 2*least {
				t.Errorf("rank %d: %d notes, want about %d", failed, x.Notes, least)
			}
		}
	}
	call, _ := barrier(2, nil)
	if _, err := Recover(plain(), call, Failure{Rank: 1}, barrier); err == nil {
		t.Error("the only other rank fails, and a recovery is simulated")
	}
}
