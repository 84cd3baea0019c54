package mpi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/seeded"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// saved is what a rank saves in a version: two slices of different lengths.
func saved(version, rank int) [][]int {
	return [][]int{{version, rank}, slices.Repeat([]int{1000*version + rank}, 10*rank)}
}

func isSaved(p mpi.Part[int], version int) error {
	if want := saved(version, p.Rank); fmt.Sprint(p.Data) != fmt.Sprint(want) {
		return fmt.Errorf("the part of rank %d in version %d is %v, want %v", p.Rank, version, p.Data, want)
	}
	return nil
}

func TestCheckpoint(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("a job keeps its checkpoints, and this begins without one several times")
	}
	mpitest.Sizes(t, []int{1, 2, 5}, func(t *testing.T, c *mpi.Comm) {
		version, parts, err := mpi.Restore[int](c)
		noError(t, err, "Restore")
		if version != 0 || parts != nil {
			t.Errorf("Restore returns version %d and %v without a checkpoint", version, parts)
		}
		for v := 1; v <= 3; v++ {
			noError(t, mpi.Checkpoint(c, v, saved(v, c.Rank())...), "Checkpoint")
		}
		wantClass(t, mpi.Checkpoint(c, 3, []int{1}), mpi.ErrArg, "an old version")
		wantClass(t, mpi.Checkpoint(c, 4, []*int{nil}), mpi.ErrType, "pointers")
		if c.Size() > 1 {
			wantClass(t, mpi.Checkpoint(c, 4+c.Rank(), []int{1}), mpi.ErrArg, "different versions")
		}
		version, parts, err = mpi.Restore[int](c)
		noError(t, err, "Restore")
		if version != 3 || len(parts) != 1 || parts[0].Rank != c.Rank() || parts[0].Size != c.Size() {
			t.Fatalf("Restore returns version %d and %v, want version 3 and the own part", version, parts)
		}
		noError(t, isSaved(parts[0], 3), "Restore")
		_, _, err = mpi.Restore[float32](c)
		wantClass(t, err, mpi.ErrType, "another type")
	})
}

// TestRestoreAfterFailure loses ranks after checkpoints: replaced, not replaced, and together with
// their buddy, which is the next rank on one host.
func TestRestoreAfterFailure(t *testing.T) {
	for name, k := range map[string]struct {
		spares  int
		victims []int
		lost    string
	}{
		"replaced": {2, []int{0, 2}, ""}, "shrunken": {0, []int{1}, ""}, "shrunken by two": {0, []int{1, 3}, ""},
		"with the buddy": {2, []int{1, 2}, "the parts of ranks [1] in checkpoint "},
	} {
		t.Run(name, func(t *testing.T) {
			j := newRecoverJob(t, 4, k.spares, func(j *recoverJob, c *mpi.Comm, a mpi.Attempt) error {
				if a.Number == 1 {
					var err error
					for v := 1; v <= 2 && err == nil; v++ {
						err = mpi.Checkpoint(c, v, saved(v, c.Rank())...)
					}
					if slices.Contains(k.victims, c.Rank()) {
						j.die(c) // also if another one has died in the barrier of the checkpoint
					}
					if err == nil {
						err = c.Barrier()
					}
					return err
				}
				version, parts, err := mpi.Restore[int](c)
				if err != nil {
					return err
				}
				own := 0
				for i, p := range parts {
					if err := isSaved(p, version); err != nil {
						return err
					}
					if own += 1 << (10 * p.Rank); i == 0 && c.Size() == 4 && p.Rank != c.Rank() {
						return fmt.Errorf("rank %d gets the part of rank %d", c.Rank(), p.Rank)
					}
				}
				sum := []int{0}
				if err := mpi.Allreduce(c, []int{own}, sum, mpi.Sum); err != nil {
					return err
				}
				if want := 1 | 1<<10 | 1<<20 | 1<<30; version != 2 || sum[0] != want {
					return fmt.Errorf("version %d: the ranks have the parts %#x, want 2 and %#x", version, sum[0], want)
				}
				return nil
			}, nil)
			if k.lost == "" {
				j.check(t)
				return
			}
			if !strings.Contains(fmt.Sprint(j.errs), k.lost) {
				t.Errorf("the errors are %v, want %q in one of them", j.errs, k.lost)
			}
			for p, err := range j.errs {
				if err == nil && !slices.Contains(k.victims, p) {
					t.Errorf("process %d returns no error", p)
				}
			}
		})
	}
}

// TestCheckpointRandom counts to a hundred with checkpoints, while ranks die in random steps,
// one after the other: always the same result.
func TestCheckpointRandom(t *testing.T) {
	random := seeded.Random(t)
	for range 4 {
		n := 3 + random.IntN(3)
		dies := map[int]int{} // attempt → rank that dies
		when := map[int]int{} // attempt → step
		for attempt := 1; attempt <= 3; attempt++ {
			dies[attempt], when[attempt] = random.IntN(n), random.IntN(30)
		}
		newRecoverJob(t, n, 3, func(j *recoverJob, c *mpi.Comm, a mpi.Attempt) error {
			version, parts, err := mpi.Restore[int](c)
			if err != nil {
				return err
			}
			count := []int{0}
			if version > 0 {
				count = parts[0].Data[0]
			}
			if count[0] != version*c.Size() {
				return fmt.Errorf("version %d has the count %d of %d ranks", version, count[0], c.Size())
			}
			for i := version + 1; i <= 100; i++ {
				if at, dying := when[a.Number]; dying && i-version > at && dies[a.Number] == c.Rank() {
					j.die(c)
				}
				sum := []int{0}
				if err := mpi.Allreduce(c, []int{1}, sum, mpi.Sum); err != nil {
					return err
				}
				count[0] += sum[0]
				if err := mpi.Checkpoint(c, i, count); err != nil {
					return err
				}
			}
			if count[0] != 100*c.Size() {
				return fmt.Errorf("the count is %d, want %d", count[0], 100*c.Size())
			}
			return nil
		}, nil).check(t)
		if t.Failed() {
			t.Fatalf("with %d ranks", n)
		}
	}
}
