package main

// A program that goes on when ranks fail, with every sum checked.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

const (
	// errorFile, followed by a rank, is the file of the directory that all ranks share with
	// the error with which a rank has left.
	errorFile = "error."
	// longStep is the time of a step after which it is reported as a pause.
	longStep = 2 * time.Second
)

// survive runs until it is killed. It prints, at the first rank left, the ranks left after
// each failure, and when.
func survive(world *mpi.Comm, dir string) error {
	err := surviveIn(world, dir)
	_ = os.WriteFile(filepath.Join(dir, fmt.Sprint(errorFile, world.Rank())), []byte(err.Error()), 0o600) // the error counts
	return err
}

// surviveIn returns the error that ends it.
func surviveIn(world *mpi.Comm, dir string) error {
	c := world
	if c.Rank() == 0 {
		fmt.Printf("survive: begins with %d ranks\n", c.Size())
	}
	pauses := 0
	for n := 0; ; n++ {
		begin := time.Now()
		sum, size := []int{0, 0}, c.Size()
		err := mpi.Allreduce(c, []int{c.Rank() + n, 1}, sum, mpi.Sum)
		if err == nil && (sum[0] != n*size+size*(size-1)/2 || sum[1] != size) {
			return fmt.Errorf("wrong data: the sums of %d ranks in step %d are %v", size, n, sum)
		}
		if err == nil {
			if pauses++; time.Since(begin) < longStep {
				pauses--
			} else if c.Rank() == 0 {
				fmt.Printf("survive: %d pause, %v\n", pauses, time.Since(begin))
			}
			time.Sleep(time.Millisecond) // the ranks share a few cores
			continue
		}
		if !errors.Is(err, mpi.ErrProcFailed) && !errors.Is(err, mpi.ErrRevoked) {
			return err
		}
		noticed := time.Now()
		if err := c.Revoke(); err != nil {
			return err
		}
		s, err := c.Shrink()
		if err != nil {
			return err
		}
		if c, n = s, 0; c.Rank() == 0 {
			fmt.Printf("survive: %d ranks left, noticed at %d, failed %v, agreed in %v\n", c.Size(), noticed.UnixMilli(), world.Failed(), time.Since(noticed))
		}
		if err := sameFailures(world, c); err != nil && !errors.Is(err, mpi.ErrProcFailed) && !errors.Is(err, mpi.ErrRevoked) {
			return err
		}
	}
}

// sameFailures checks that all ranks know the failures in the same order. One rank may know
// more of them.
func sameFailures(world, c *mpi.Comm) error {
	mine := world.Failed()
	all, err := mpi.AllgatherValue(c, mine)
	if err != nil {
		return err
	}
	for r, theirs := range all {
		n := min(len(mine), len(theirs))
		if !slices.Equal(mine[:n], theirs[:n]) {
			return fmt.Errorf("the ranks have learned of failures in different orders: %v and, at rank %d, %v", mine, r, theirs)
		}
	}
	return nil
}
