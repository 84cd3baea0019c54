package mpi

import "testing"

// TestRanksOnCores checks that ranks that are told of more ranks than cores yield early.
func TestRanksOnCores(t *testing.T) {
	for _, c := range []struct {
		ranks int
		want  bool
	}{{0, false}, {1 << 20, true}} {
		worlds, err := Local(1, &Config{Advanced: Advanced{RanksOnCores: c.ranks}})
		if err != nil {
			t.Fatal(err)
		}
		if got := worlds[0].e.Oversubscribed(); got != c.want {
			t.Errorf("RanksOnCores %d: ranks share cores is %v, want %v", c.ranks, got, c.want)
		}
		if err := worlds[0].Finalize(); err != nil {
			t.Error(err)
		}
	}
}
