package bench

import (
	"slices"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestEveryCollectiveIsMeasured(t *testing.T) {
	for _, b := range collectiveBenchmarks() {
		t.Run(b.Name, func(t *testing.T) {
			sizes := []int{8, 1000}
			if b.Sizes == nil {
				sizes = nil
			}
			var results []Result
			mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
				err := b.Run(c, &Params{Sizes: sizes, Iterations: 3, Warmup: 1}, func(r Result) {
					if c.Rank() == 0 {
						results = append(results, r)
					}
				})
				if err != nil {
					t.Error(err)
				}
			})
			if sizes == nil {
				sizes = []int{0}
			}
			var seen []int
			for _, r := range results {
				seen = append(seen, r.Size)
				switch {
				case r.Metric == "overlap" && (r.Value < 0 || r.Value > 100):
					t.Errorf("an overlap of %g %%", r.Value)
				case r.Metric != "overlap" && r.Value <= 0:
					t.Errorf("%s takes no time: %+v", b.Name, r)
				case r.Min > r.P50 || r.P50 > r.P99:
					t.Errorf("figures of batches out of order: %+v", r)
				}
			}
			if seen = slices.Compact(seen); !slices.Equal(seen, sizes) {
				t.Errorf("sizes %v were measured, not %v", seen, sizes)
			}
		})
	}
}

func TestOverlapOfCollective(t *testing.T) {
	for _, c := range []struct {
		name                        string
		alone, overall, computation float64
		want                        float64
	}{
		{"all is hidden", 100, 100, 100, 100},
		{"nothing is hidden", 100, 200, 100, 0},
		{"half is hidden", 100, 150, 100, 50},
		{"the call became longer than both", 100, 250, 100, 0},
	} {
		var got []Result
		emitOverlap(8, []float64{c.alone, c.overall, c.computation}, func(r Result) { got = append(got, r) })
		if len(got) != 4 || got[0].Value != c.want || got[0].Beside || !got[1].Beside {
			t.Errorf("%s: %+v; the first must be an overlap of %g %%, and the times stand beside it", c.name, got, c.want)
		}
	}
}
