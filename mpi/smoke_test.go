package mpi_test

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestSmoke(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		for _, size := range []int{0, 1, 8, 100, 5000, 70000, 3 << 20} {
			mpitest.Run(t, n, func(t *testing.T, c *mpi.Comm) {
				out := make([]byte, size)
				for i := range out {
					out[i] = byte(i * (c.Rank() + 3))
				}
				in := make([]byte, size)
				next, prev := (c.Rank()+1)%n, (c.Rank()+n-1)%n
				for range 20 {
					st, err := mpi.Sendrecv(c, out, next, 7, in, prev, 7)
					if err != nil {
						t.Error(err)
						return
					}
					if st.Source != prev || st.Bytes != size {
						t.Errorf("status %+v", st)
					}
				}
				for i := range in {
					if in[i] != byte(i*(prev+3)) {
						t.Errorf("rank %d byte %d of %d wrong", c.Rank(), i, size)
						return
					}
				}
				s := []int{c.Rank()}
				if err := mpi.Allreduce(c, s, s, mpi.Sum[int]()); err != nil || s[0] != n*(n-1)/2 {
					t.Errorf("allreduce %v %v", s, err)
				}
				d, err := c.Split(c.Rank()%2, -c.Rank())
				if err != nil {
					t.Error(err)
					return
				}
				if err := mpi.Barrier(d); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
