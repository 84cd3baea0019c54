package mpi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// A goroutine may name a communicator while others use it (MPI-4.1 section 11.6). The race
// detector reports it otherwise.
func TestSetNameDuringCalls(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		d, err := c.Dup()
		noError(t, err, "Dup")
		var named sync.WaitGroup
		named.Go(func() {
			for i := range 50 {
				d.SetName(fmt.Sprint("name ", i))
			}
		})
		for range 50 {
			if c.Rank() == 0 {
				noError(t, mpi.Send(d, []int{1}, 1, 0), "Send")
			} else {
				_, err := mpi.Recv(d, []int{0}, 0, 0)
				noError(t, err, "Recv")
			}
			noError(t, d.Barrier(), "Barrier")
			if err := mpi.Send(d, []int{1}, 2, 0); err == nil || !strings.Contains(err.Error(), "there is no rank 2") {
				t.Errorf("Send to rank 2 of 2: %v", err)
			}
		}
		named.Wait()
		if e, err := d.Dup(); err != nil || e.Name() != "name 49.dup" || d.Name() != "name 49" || c.Name() != "world" {
			t.Errorf("names %q, %q and %q: %v", e.Name(), d.Name(), c.Name(), err)
		}
	})
}
