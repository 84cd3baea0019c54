package nodecoll

import (
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/internal/race"
)

func sum(inout, in []int64) {
	for i := range inout {
		inout[i] += in[i]
	}
}

// steady returns calls that a program repeats.
func steady(t *Team, words int) map[string]func() error {
	v, all := make([]int64, words), make([]int64, words*t.Size())
	b, every := bytesOf(v), bytesOf(all)
	return map[string]func() error{
		"barrier":   func() error { return t.Barrier("Barrier") },
		"bcast":     func() error { return t.Bcast("Bcast", b, 0) },
		"allgather": func() error { return t.Allgather("Allgather", b, every, len(b)) },
		"alltoall":  func() error { return t.Alltoall("Alltoall", nil, every, len(b)) },
		"reduce":    func() error { return Reduce(t, "Reduce", v, v, sum, 1, true, 0) },
		"allreduce": func() error { return Allreduce(t, "Allreduce", v, v, sum, 1, true) },
	}
}

func BenchmarkTwoRanks(b *testing.B) {
	for _, words := range []int{1, 1 << 10} {
		for _, name := range []string{"barrier", "bcast", "allgather", "alltoall", "reduce", "allreduce"} {
			b.Run(fmt.Sprintf("%s/%dB", name, 8*words), func(b *testing.B) {
				b.ReportAllocs()
				newRig(2).run(b, false, func(t testing.TB, team *Team) {
					fn := steady(team, words)[name]
					for range b.N {
						if err := fn(); err != nil {
							t.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

// Calls do not allocate.
func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates itself")
	}
	for _, words := range []int{1, 100, 1 << 13} {
		for _, name := range []string{"barrier", "bcast", "allgather", "alltoall", "reduce", "allreduce"} {
			const calls = 100
			newRig(2).run(t, false, func(t testing.TB, team *Team) {
				fn := steady(team, words)[name]
				step := func() {
					if err := fn(); err != nil {
						t.Error(err)
					}
				}
				if team.Rank() == 1 { // AllocsPerRun makes one more call to warm up
					for range calls + 1 {
						step()
					}
					return
				}
				if n := testing.AllocsPerRun(calls, step); n >= 1 {
					t.Errorf("%s of %d words: %v allocations per call", name, words, n)
				}
			})
		}
	}
}
