package mpi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
)

// TestAlltoallvByColumns checks calls whose lengths change from one to the next, on nodes
// of different sizes. Where a call may not wait for the lengths, another algorithm serves
// it. With 3 ranks on two hosts, rank 1 hands nothing on.
func TestAlltoallvByColumns(t *testing.T) {
	for _, layout := range []struct{ ranks, perHost int }{{2, 1}, {3, 2}, {5, 2}, {8, 4}, {11, 4}} {
		t.Run(fmt.Sprintf("%d ranks, %d a host", layout.ranks, layout.perHost), func(t *testing.T) {
			runOnHosts(t, layout.ranks, layout.perHost, true, &wire{}, func(c *Comm) error {
				d, err := c.DupWithCollective("alltoall=node-columns")
				if err != nil {
					return err
				}
				return errors.Join(alltoallvByColumns(d), d.Free())
			})
		})
	}
}

func alltoallvByColumns(c *Comm) error {
	for _, way := range []string{"", "I", "Init"} {
		form := lateForm{coll.Alltoall, true, way}
		for _, n := range []int{1, 30, 31, 1, 4_000} {
			call := newLateCall(c, form, n, 0)
			for range 2 {
				if err := call.run(); err != nil {
					return fmt.Errorf("%v of about %d elements: %w", form, n, err)
				}
			}
			columns := c.plans.last[coll.Alltoall].by.Algorithm.Name == "node-columns"
			if want := way != "I"; columns != want {
				return fmt.Errorf("%v of about %d elements goes by columns: %v, want %v", form, n, columns, want)
			}
		}
	}
	return nil
}

// TestAlltoallvColumnsPlans checks that a plan serves a call only if the lengths of the
// blocks to hand on are the same: those of the rank itself may be.
func TestAlltoallvColumnsPlans(t *testing.T) {
	const ranks = 4
	runOnHosts(t, ranks, 2, true, &wire{}, func(c *Comm) error {
		d, err := c.DupWithCollective("alltoall=node-columns")
		if err != nil {
			return err
		}
		for i := range 6 {
			n := 1 + i%3 // elements from rank 0 to rank 3, which rank 2 hands on
			sends, recvs := []int{1, 1, 1, 1}, []int{1, 1, 1, 1}
			if d.rank == 0 {
				sends[3] = n
			}
			if d.rank == 3 {
				recvs[0] = n
			}
			in, out := make([]int64, 3+sends[3]), make([]int64, 3+recvs[0])
			for j := range in {
				in[j] = int64(100*d.rank + j)
			}
			if err := Alltoallv(d, in, sends, nil, out, recvs, nil); err != nil {
				return err
			}
			if d.rank == 3 {
				for j := range n {
					if out[j] != int64(3+j) {
						return fmt.Errorf("call %d: element %d from rank 0 is %d, want %d", i, j, out[j], 3+j)
					}
				}
			}
		}
		return d.Free()
	})
}

// TestAlltoallvInvalidLengths checks that a rank that is told of blocks without end breaks
// the communicator: the other ranks wait for what it would hand on.
func TestAlltoallvInvalidLengths(t *testing.T) {
	const ranks = 4
	runOnHosts(t, ranks, 2, true, &wire{}, func(c *Comm) error {
		d, err := c.DupWithCollective("alltoall=node-columns")
		if err != nil {
			return err
		}
		ones := []int{1, 1, 1, 1}
		if d.rank == 0 { // rank 2 is told of a block for rank 3 that no memory holds
			k := &collCall{name: "Alltoallv", key: planKey{kind: coll.Alltoall, irregular: true, elem: 8},
				sendCounts: []int{1, 1, 1, 1 << 50}, recvCounts: ones}
			h := d.e.Hold()
			err = d.learnLengths(h, k)
			h.Release()
			if err == nil {
				_, err = Recv(c, make([]byte, 1), 2, 0)
			}
			if err == nil {
				err = d.Barrier()
			}
		} else {
			err = Alltoallv(d, make([]int64, ranks), ones, nil, make([]int64, ranks), ones, nil)
		}
		if d.rank == 2 {
			if err := Send(c, make([]byte, 1), 0, 0); err != nil {
				return err
			}
		}
		if err == nil || !strings.Contains(err.Error(), "rank 0 reports a block of") {
			return fmt.Errorf("the call ends with %v, want an error that names the block of rank 0", err)
		}
		return nil
	})
}
