package mpi_test

// The calls of the program "kill matrix". Each checks what it gets as long as it succeeds.

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/mpi"
)

// killSteps are the calls during which a rank is killed. make returns the call, which is
// repeated until it fails; n counts the repetitions.
var killSteps = []struct {
	name string
	make func(c *mpi.Comm, victim int) (func(n int) error, error)
}{
	{"p2p", simple(func(c *mpi.Comm, victim, n int) error {
		got := []int{0}
		if c.Rank() != victim {
			if _, err := mpi.Sendrecv(c, []int{c.Rank() + n}, victim, 1, got, victim, 1); err != nil {
				return err
			}
			return correct(got, victim+n)
		}
		for r := range c.Size() {
			if r == victim {
				continue
			}
			if _, err := mpi.Sendrecv(c, []int{victim + n}, r, 1, got, r, 1); err != nil {
				return err
			}
			if err := correct(got, r+n); err != nil {
				return err
			}
		}
		return nil
	})},
	{"large p2p", simple(func(c *mpi.Comm, victim, n int) error {
		b := make([]int, 1<<17)
		if c.Rank() != victim {
			if _, err := mpi.Recv(c, b, victim, 1); err != nil {
				return err
			}
			return correct(b, n)
		}
		for r := range c.Size() {
			if r == victim {
				continue
			}
			if err := mpi.Send(c, repeated(n, len(b)), r, 1); err != nil {
				return err
			}
		}
		return nil
	})},
	{"Barrier", simple(func(c *mpi.Comm, _, _ int) error { return c.Barrier() })},
	{"Bcast", simple(func(c *mpi.Comm, victim, n int) error {
		b := make([]int, 1<<17)
		if c.Rank() == victim {
			b = repeated(n, len(b))
		}
		if err := mpi.Bcast(c, b, victim); err != nil {
			return err
		}
		return correct(b, n)
	})},
	{"Allreduce", allreduceOf(1)},
	{"large Allreduce", allreduceOf(1 << 17)},
	{"Alltoall", simple(func(c *mpi.Comm, _, n int) error {
		got := make([]int, c.Size())
		if err := mpi.Alltoall(c, repeated(c.Rank()+n, c.Size()), got); err != nil {
			return err
		}
		return eachFrom(got, n)
	})},
	{"Iallreduce", simple(func(c *mpi.Comm, _, n int) error {
		sum := []int{0}
		if err := waitErr(mpi.Iallreduce(c, []int{n}, sum, mpi.Sum)); err != nil {
			return err
		}
		return correct(sum, n*c.Size())
	})},
	{"Split", simple(func(c *mpi.Comm, _, _ int) error {
		s, err := c.Split(0, -c.Rank())
		if err != nil {
			return err
		}
		if s.Size() != c.Size() || s.Rank() != c.Size()-1-c.Rank() {
			return fmt.Errorf("wrong result: rank %d of %d is %d of %d", c.Rank(), c.Size(), s.Rank(), s.Size())
		}
		return s.Free()
	})},
	{"Fence", func(c *mpi.Comm, _ int) (func(int) error, error) {
		w, err := mpi.AllocateWin[int](c, 8)
		return func(n int) error {
			if err := w.Fence(); err != nil {
				return err
			}
			if err := w.Put([]int{n}, (c.Rank()+1)%c.Size(), 0); err != nil {
				return err
			}
			if err := w.Fence(); err != nil {
				return err
			}
			return correct(w.Memory()[:1], n)
		}, err
	}},
	{"Lock", func(c *mpi.Comm, victim int) (func(int) error, error) {
		w, err := mpi.AllocateWin[int](c, c.Size())
		return func(n int) error {
			if err := w.Lock(victim, mpi.LockExclusive); err != nil {
				return err
			}
			if err := w.Put([]int{n}, victim, c.Rank()); err != nil {
				return err
			}
			return w.Unlock(victim)
		}, err
	}},
	{"Reduce", simple(func(c *mpi.Comm, victim, n int) error {
		sum, root := []int{0}, (victim+1)%c.Size()
		if err := mpi.Reduce(c, []int{n}, sum, mpi.Sum, root); err != nil || c.Rank() != root {
			return settled(c, n, err)
		}
		if err := correct(sum, n*c.Size()); err != nil {
			return err
		}
		return settled(c, n, nil)
	})},
	{"Gather", simple(func(c *mpi.Comm, victim, n int) error {
		all, root := make([]int, c.Size()), (victim+1)%c.Size()
		if err := mpi.Gather(c, []int{c.Rank() + n}, all, root); err != nil || c.Rank() != root {
			return settled(c, n, err)
		}
		if err := eachFrom(all, n); err != nil {
			return err
		}
		return settled(c, n, nil)
	})},
	{"Scatter", simple(func(c *mpi.Comm, victim, n int) error {
		got := []int{0}
		if err := mpi.Scatter(c, repeated(n, c.Size()), got, victim); err != nil {
			return err
		}
		return correct(got, n)
	})},
	{"Allgather", simple(func(c *mpi.Comm, _, n int) error {
		all := make([]int, c.Size())
		if err := mpi.Allgather(c, []int{c.Rank() + n}, all); err != nil {
			return err
		}
		return eachFrom(all, n)
	})},
	{"Scan", simple(func(c *mpi.Comm, _, n int) error {
		sum := []int{0}
		if err := mpi.Scan(c, []int{n}, sum, mpi.Sum); err != nil {
			return settled(c, n, err)
		}
		if err := correct(sum, n*(c.Rank()+1)); err != nil {
			return err
		}
		return settled(c, n, nil)
	})},
	{"ReduceScatter", simple(func(c *mpi.Comm, _, n int) error {
		sum := []int{0}
		if err := mpi.ReduceScatterBlock(c, repeated(n, c.Size()), sum, mpi.Sum); err != nil {
			return err
		}
		return correct(sum, n*c.Size())
	})},
	{"WriteAtAll", func(c *mpi.Comm, _ int) (func(int) error, error) {
		return writeTogether(c, 64, mpi.FileHints{CollectiveWrite: "always", BufferSize: 16 << 10})
	}},
}

func simple(call func(c *mpi.Comm, victim, n int) error) func(c *mpi.Comm, victim int) (func(int) error, error) {
	return func(c *mpi.Comm, victim int) (func(int) error, error) {
		return func(n int) error { return call(c, victim, n) }, nil
	}
}

// settled ends a repetition of a call that some ranks leave before others have entered it.
func settled(c *mpi.Comm, n int, err error) error {
	if err == nil && n%16 == 15 {
		err = c.Barrier()
	}
	return err
}

func allreduceOf(count int) func(c *mpi.Comm, victim int) (func(int) error, error) {
	return simple(func(c *mpi.Comm, _, n int) error {
		sum := make([]int, count)
		if err := mpi.Allreduce(c, repeated(n, count), sum, mpi.Sum); err != nil {
			return err
		}
		return correct(sum, n*c.Size())
	})
}

func repeated(value, count int) []int { return slices.Repeat([]int{value}, count) }

// correct checks that all elements have a value.
func correct(got []int, want int) error {
	for i, v := range got {
		if v != want {
			return fmt.Errorf("wrong data: element %d of %d is %d, want %d", i, len(got), v, want)
		}
	}
	return nil
}

// eachFrom checks that element r is r + n.
func eachFrom(got []int, n int) error {
	for r, v := range got {
		if v != r+n {
			return fmt.Errorf("wrong data: element %d of %d is %d, want %d", r, len(got), v, r+n)
		}
	}
	return nil
}
