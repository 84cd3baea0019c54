package bench

import (
	"math"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestArrivalsAreRandomUpToTheFactor(t *testing.T) {
	const ranks, calls, message = 16, 500, time.Microsecond
	p := Pattern{MIF: 32}
	sum, most := 0.0, time.Duration(0)
	for call := range calls {
		for r := range ranks {
			d := p.delay(call, r, ranks, message)
			sum, most = sum+float64(d), max(most, d)
			if again := p.delay(call, r, ranks, message); d < 0 || again != d {
				t.Fatalf("rank %d is away for %v and then for %v before the same call", r, d, again)
			}
		}
	}
	// The mean of 8000 numbers up to 32 is within 0.1 of 16 by ten to one.
	if mean := sum / (ranks * calls) / float64(message); math.Abs(mean-16) > 0.5 || most > 32*message || most < 31*message {
		t.Errorf("ranks are away for %.2f messages in the mean and %v at most; want 16 and 32", mean, most)
	}
}

func TestLateShareOfRanks(t *testing.T) {
	for _, tt := range []struct {
		share float64
		ranks int
		want  int
		name  string
	}{
		{.25, 16, 4, "mif-128-late-25"},
		{.75, 16, 12, "mif-128-late-75"},
		{.125, 8, 1, "mif-128-late-12.5"},
		{.01, 4, 1, "mif-128-late-1"}, // at least one
		{1, 5, 5, "mif-128-late-100"},
	} {
		p, often := Pattern{MIF: 128, Late: tt.share}, map[int]int{}
		if p.String() != tt.name {
			t.Errorf("%+v is called %s, want %s", p, p, tt.name)
		}
		for call := range 200 {
			late := 0
			for r := range tt.ranks {
				switch p.delay(call, r, tt.ranks, time.Microsecond) {
				case 128 * time.Microsecond:
					late++
					often[r]++
				case 0:
				default:
					t.Fatal("a rank is neither late nor on time")
				}
			}
			if late != tt.want {
				t.Fatalf("%d of %d ranks are late, want %d", late, tt.ranks, tt.want)
			}
		}
		if len(often) != tt.ranks {
			t.Errorf("%d of %d ranks are late ever; want others in each call", len(often), tt.ranks)
		}
	}
}

func TestCallTimes(t *testing.T) {
	got := timesOf([]moment{{1000, 9000, 100}, {3000, 8000, 200}, {5000, 11000, 400}})
	if want := (callTimes{mean: (8 + 5 + 6) / 3., bound: (4 + 2 + 0) / 3., tail: 6, cpu: 0.7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSkewMeasuresEachAlgorithm(t *testing.T) {
	mpitest.Run(t, 3, func(t *testing.T, c *mpi.Comm) {
		p := &SkewParams{Collectives: []string{"alltoall"}, Sizes: []int{8, 1024}, Algorithms: []string{"", "direct"},
			Patterns: []Pattern{{MIF: 4}, {MIF: 8, Late: .5}}, Message: []time.Duration{200 * time.Microsecond}, Calls: 3, Sleep: true}
		var got []SkewFigure
		if err := Skew(c, p, func(f SkewFigure) { got = append(got, f) }); err != nil {
			t.Fatal(err)
		}
		if c.Rank() != 0 {
			if got != nil {
				t.Error("a rank other than 0 has figures")
			}
			return
		}
		if len(got) != 2*2*2 {
			t.Fatalf("got %d figures, want 8", len(got))
		}
		for i, f := range got {
			if f.Algorithm != p.Algorithms[i%2] || f.Calls != 3 || f.Message != 200 {
				t.Errorf("figure %d is of %d calls by %q with messages of %g us", i, f.Calls, f.Algorithm, f.Message)
			}
			if !(f.Tail.Value > 0 && f.Bound.Value > 0 && f.Mean.Value >= f.Bound.Value && f.TailRatio > 0) {
				t.Errorf("mean %g, bound %g, tail %g are inconsistent", f.Mean.Value, f.Bound.Value, f.Tail.Value)
			}
		}
	})
}
