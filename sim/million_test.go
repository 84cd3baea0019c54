package sim

import (
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
)

// TestMillionRanks runs the schedules of 2^20 ranks on 16,384 nodes. The bounds are those
// of the project: at most 1 KB a rank.
func TestMillionRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const ranks, nodes, rounds = 1 << 20, 1 << 14, 20
	layout := Layout(ranks, nodes, 2)
	for _, c := range []struct {
		kind      coll.Kind
		algorithm string
		bytes     int
		messages  int64
		templates int
	}{
		{coll.Bcast, "binomial", 8, ranks - 1, rounds + 1},
		{coll.Barrier, "dissemination", 0, ranks * rounds, 1},
	} {
		a := find(t, c.kind, c.algorithm)
		x := simulate(t, Config{Machine: Default(), Calls: []Call{{Algorithm: a, Params: a.Default(), Shape: shape(c.kind, ranks, c.bytes, layout)}}})
		if x.Stats.Messages() != c.messages {
			t.Errorf("%s of %d ranks by %s: %d messages, want %d", c.kind, ranks, c.algorithm, x.Stats.Messages(), c.messages)
		}
		if b := x.BytesPerRank(); b > 1024 || x.Templates != c.templates {
			t.Errorf("%s of %d ranks by %s takes %.0f bytes a rank, want at most 1024; %d schedules, want %d; %+v", c.kind, ranks, c.algorithm, b, x.Templates, c.templates, x.Memory)
		}
	}
}
