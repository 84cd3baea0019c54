package mpi_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// The sides divide the message differently, and goroutines make partitions ready in any order.
func TestPartitioned(t *testing.T) {
	const n, rounds = 96, 3
	for _, parts := range [][2]int{{1, 1}, {8, 8}, {1, 16}, {16, 32}, {32, 3}} {
		mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
			buf := make([]int32, n)
			if c.Rank() == 0 {
				p := mpi.PsendInit(c, buf, parts[0], 1, 7)
				for round := range rounds {
					noError(t, p.Start(), "Start")
					size := n / parts[0]
					var g sync.WaitGroup
					for i := range parts[0] {
						g.Go(func() {
							for k := range size {
								buf[i*size+k] = int32(i*size + k + round)
							}
							if err := p.Ready(i); err != nil {
								t.Error(err)
							}
						})
					}
					g.Wait()
					_, err := p.Wait()
					noError(t, err, "partitioned message")
				}
				return
			}
			p := mpi.PrecvInit(c, buf, parts[1], 0, 7)
			for round := range rounds {
				clear(buf)
				noError(t, p.Start(), "Start")
				size := n / parts[1]
				for i := range parts[1] {
					for arrived := false; !arrived; {
						var err error
						arrived, err = p.Arrived(i)
						noError(t, err, "partitioned message")
					}
					for k, v := range buf[i*size : (i+1)*size] {
						if want := int32(i*size + k + round); v != want {
							t.Fatalf("round %d, partition %d: element %d is %d, want %d", round, i, k, v, want)
						}
					}
				}
				st, err := p.Wait()
				noError(t, err, "partitioned message")
				if st.Source != 0 || st.Tag != 7 || st.Bytes != 4*n {
					t.Fatalf("status %+v", st)
				}
			}
		})
	}
}

// Two messages with the same tag are paired in the order of the calls that prepare them, not
// in that of Start.
func TestPartitionedPairs(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		bufs := [2][]int32{{1}, {2}}
		var ps [2]*mpi.Partitioned
		for i := range ps {
			if c.Rank() == 0 {
				ps[i] = mpi.PsendInit(c, bufs[i], 1, 1, 0)
			} else {
				bufs[i][0] = 0
				ps[i] = mpi.PrecvInit(c, bufs[i], 1, 0, 0)
			}
		}
		order := []int{0, 1}
		if c.Rank() == 0 {
			slices.Reverse(order)
		}
		for _, i := range order {
			noError(t, ps[i].Start(), "Start")
			if c.Rank() == 0 {
				noError(t, ps[i].Ready(0), "Ready")
			}
		}
		for i, p := range ps {
			_, err := p.Wait()
			noError(t, err, "partitioned message")
			if bufs[i][0] != int32(i+1) {
				t.Errorf("message %d has %d", i, bufs[i][0])
			}
		}
	})
}

func TestPartitionedErrors(t *testing.T) {
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		if err := mpi.PsendInit(c, make([]byte, 3), 2, 0, 0).Start(); !errors.Is(err, mpi.ErrCount) {
			t.Errorf("3 elements in 2 partitions: %v", err)
		}
		if err := mpi.PrecvInit(c, make([]byte, 2), 2, mpi.AnySource, 0).Start(); !errors.Is(err, mpi.ErrRank) {
			t.Errorf("from any source: %v", err)
		}
		s, r := mpi.PsendInit(c, make([]byte, 4), 2, 0, 0), mpi.PrecvInit(c, make([]byte, 2), 2, 0, 0)
		noError(t, s.Start(), "Start")
		noError(t, r.Start(), "Start")
		if err := s.Ready(2); !errors.Is(err, mpi.ErrArg) {
			t.Errorf("Ready(2): %v", err)
		}
		if err := r.Ready(0); !errors.Is(err, mpi.ErrRequest) {
			t.Errorf("Ready of a receive: %v", err)
		}
		if _, err := r.Wait(); !errors.Is(err, mpi.ErrTruncate) {
			t.Errorf("a longer message: %v", err)
		}
	})
}
