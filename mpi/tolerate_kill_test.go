package mpi_test

// The program of TestKillMatrix. In each step the last rank is killed while all ranks make
// one kind of call, the others get an error that names it, and go on without it.

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

const killProgram = "kill matrix"

// killSteps are the calls during which a rank is killed. make returns the call, which is
// repeated until it fails.
var killSteps = []struct {
	name string
	make func(c *mpi.Comm) (func() error, error)
}{
	{"p2p", simple(func(c *mpi.Comm) error {
		last, b := c.Size()-1, []int{0}
		if c.Rank() < last {
			return second(mpi.Sendrecv(c, b, last, 1, b, last, 1))
		}
		for r := range last {
			if _, err := mpi.Sendrecv(c, b, r, 1, b, r, 1); err != nil {
				return err
			}
		}
		return nil
	})},
	{"large p2p", simple(func(c *mpi.Comm) error {
		last, b := c.Size()-1, make([]byte, 1<<20)
		if c.Rank() < last {
			return second(mpi.Recv(c, b, last, 1))
		}
		for r := range last {
			if err := mpi.Send(c, b, r, 1); err != nil {
				return err
			}
		}
		return nil
	})},
	{"Barrier", simple(mpi.Barrier)},
	{"Bcast", simple(func(c *mpi.Comm) error { return mpi.Bcast(c, make([]byte, 1<<20), c.Size()-1) })},
	{"Allreduce", simple(func(c *mpi.Comm) error {
		return mpi.Allreduce(c, []int{1}, []int{1}, mpi.Sum[int]())
	})},
	{"large Allreduce", simple(func(c *mpi.Comm) error {
		return mpi.Allreduce(c, make([]int, 1<<17), make([]int, 1<<17), mpi.Sum[int]())
	})},
	{"Alltoall", simple(func(c *mpi.Comm) error { return mpi.Alltoall(c, make([]int, c.Size()), make([]int, c.Size())) })},
	{"Iallreduce", simple(func(c *mpi.Comm) error {
		return waitErr(mpi.Iallreduce(c, []int{1}, []int{1}, mpi.Sum[int]()))
	})},
	{"Split", simple(func(c *mpi.Comm) error {
		s, err := c.Split(0, c.Rank())
		if err == nil {
			err = s.Free()
		}
		return err
	})},
	{"Fence", func(c *mpi.Comm) (func() error, error) {
		w, err := mpi.AllocateWin[int](c, 8)
		return func() error { return w.Fence() }, err
	}},
	{"Lock", func(c *mpi.Comm) (func() error, error) {
		w, err := mpi.AllocateWin[int](c, 8)
		return func() error {
			if err := w.Lock(c.Size()-1, true); err != nil {
				return err
			}
			if err := w.Put([]int{1}, c.Size()-1, 0); err != nil {
				return err
			}
			return w.Unlock(c.Size() - 1)
		}, err
	}},
}

func simple(call func(c *mpi.Comm) error) func(c *mpi.Comm) (func() error, error) {
	return func(c *mpi.Comm) (func() error, error) { return func() error { return call(c) }, nil }
}

func killMatrix(c *mpi.Comm) error {
	for _, step := range killSteps {
		call, err := step.make(c)
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		victim := c.Size() - 1
		if c.Rank() == victim {
			time.AfterFunc(20*time.Millisecond, killNow)
		}
		begin := time.Now()
		for err = call(); err == nil && time.Since(begin) < 20*time.Second; {
			err = call()
		}
		if c.Rank() == victim {
			select {} // until it is killed
		}
		if err := isFailure(err, victim); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		took := time.Since(begin)
		if _, failed, err := c.Agree(0); err != nil || len(failed) != 1 || failed[0] != victim {
			return fmt.Errorf("%s: the ranks agree on the failed ranks %v (%v), want rank %d", step.name, failed, err, victim)
		}
		if err := c.Revoke(); err != nil {
			return err
		}
		s, err := c.Shrink()
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		sum := []int{0}
		if err := mpi.Allreduce(s, []int{1 << s.Rank()}, sum, mpi.Sum[int]()); err != nil || sum[0] != 1<<victim-1 {
			return fmt.Errorf("%s: the sum of the %d ranks left is %d: %w", step.name, s.Size(), sum[0], err)
		}
		if c = s; c.Rank() == 0 {
			fmt.Printf("%s: %d ranks left, error after %v\n", step.name, s.Size(), took.Round(time.Millisecond))
		}
	}
	if c.Size() < 2 {
		return errors.New("too few ranks")
	}
	if c.Rank() == 1 {
		killNow() // while the others are in Finalize
	}
	return nil
}

func killNow() {
	p, _ := os.FindProcess(os.Getpid())
	_ = p.Kill()
}
