package mpi_test

import (
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// TestTolerateLengths checks that with Config.Advanced.TolerateLengths the ranks that see
// another length get an error, and that the communicator stays usable.
func TestTolerateLengths(t *testing.T) {
	t.Setenv("MUSTER_CHECK", "off") // check mode compares the lengths itself
	cfg := &mpi.Config{Advanced: mpi.Advanced{TolerateLengths: true}}
	for _, segment := range []bool{false, true} {
		t.Run(fmt.Sprintf("segment=%v", segment), func(t *testing.T) {
			mpitest.RunConfig(t, 4, cfg, func(t *testing.T, c *mpi.Comm) {
				d := duplicate(t, c, segment)
				for _, lens := range [][2]int{{1, 10}, {10, 1}, {3, 100}} { // at the root and elsewhere
					b := make([]int32, lens[min(c.Rank(), 1)])
					if err := mpi.Bcast(d, b, 0); c.Rank() != 0 {
						wantClass(t, err, mpi.ErrTruncate, "Bcast")
					}
					sum := []int64{int64(c.Rank())}
					noError(t, mpi.Allreduce(d, sum, sum, mpi.Sum), fmt.Sprintf("Allreduce after %v", lens))
					if sum[0] != 6 {
						t.Errorf("after lengths %v the sum is %d instead of 6", lens, sum[0])
					}
				}
				noError(t, d.Barrier(), "Barrier")
				noError(t, d.Free(), "Free")
			})
		})
	}
}
