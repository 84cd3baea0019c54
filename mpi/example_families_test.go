package mpi_test

import (
	"context"
	"fmt"

	"github.com/muster-mpi/muster/mpi"
)

// The sum of one field and the maximum of another.
func ExampleElementwise() {
	type stats struct {
		Count   int
		Slowest float64
	}
	merge := mpi.Elementwise(func(a, b stats) stats {
		return stats{a.Count + b.Count, max(a.Slowest, b.Slowest)}
	})
	onRanks(3, func(world *mpi.Comm) error {
		all := []stats{{Count: 1, Slowest: float64(world.Rank())}}
		if err := mpi.Allreduce(world, nil, all, merge); err != nil || world.Rank() != 0 {
			return err
		}
		fmt.Println(all[0])
		return nil
	})
	// Output: {3 2}
}

// An operation whose order matters: the composition of functions a·x + b.
func ExampleUserOp() {
	type affine struct{ A, B int }
	compose := mpi.UserOp[affine]{Name: "compose", NonCommutative: true, Combine: func(inout, in []affine) {
		for i, f := range in {
			inout[i] = affine{inout[i].A * f.A, inout[i].A*f.B + inout[i].B}
		}
	}}
	onRanks(3, func(world *mpi.Comm) error {
		f := []affine{{A: 2, B: world.Rank()}}
		if err := mpi.Reduce(world, f, f, compose.Op, 0); err != nil || world.Rank() != 0 {
			return err
		}
		fmt.Printf("%d·x + %d\n", f[0].A, f[0].B)
		return nil
	})
	// Output: 8·x + 4
}

func ExampleRecvSlice() {
	onRanks(2, func(world *mpi.Comm) error {
		if world.Rank() == 1 {
			return mpi.Send(world, []int{1, 2, 3}, 0, 0)
		}
		got, st, err := mpi.RecvSlice[int](world, mpi.AnySource, mpi.AnyTag)
		if err != nil {
			return err
		}
		fmt.Println(got, "from rank", st.Source)
		return nil
	})
	// Output: [1 2 3] from rank 1
}

// Rank 0 serves requests of any length until it has had one of each other rank.
func ExampleComm_Messages() {
	onRanks(3, func(world *mpi.Comm) error {
		if world.Rank() != 0 {
			return mpi.Send(world, make([]int, world.Rank()), 0, 0)
		}
		served, total := 0, 0
		for m, err := range world.Messages(context.Background(), mpi.AnySource, 0) {
			if err != nil {
				return err
			}
			work, _, err := mpi.MrecvSlice[int](m)
			if err != nil {
				return err
			}
			total += len(work)
			if served++; served == world.Size()-1 {
				break
			}
		}
		fmt.Println(total, "elements in", served, "messages")
		return nil
	})
	// Output: 3 elements in 2 messages
}

// Each message is used as soon as it is there.
func ExampleCompletions() {
	onRanks(3, func(world *mpi.Comm) error {
		if world.Rank() != 0 {
			return mpi.Send(world, []int{world.Rank()}, 0, 0)
		}
		a, b := make([]int, 1), make([]int, 1)
		reqs := []mpi.Request{mpi.Irecv(world, a, 1, 0), mpi.Irecv(world, b, 2, 0)}
		sum := 0
		for done, err := range mpi.Completions(context.Background(), reqs) {
			if err != nil {
				return err
			}
			sum += done.Status.Source
		}
		fmt.Println(sum, a[0]+b[0])
		return nil
	})
	// Output: 3 3
}

// A message is sent in parts, as they are computed.
func ExamplePsendInit() {
	onRanks(2, func(world *mpi.Comm) error {
		const parts = 4
		buf := make([]int, 8)
		if world.Rank() == 0 {
			p := mpi.PsendInit(world, buf, parts, 1, 0)
			if err := p.Start(); err != nil {
				return err
			}
			for i := range parts {
				buf[2*i], buf[2*i+1] = i, i
				if err := p.Ready(i); err != nil {
					return err
				}
			}
			_, err := p.Wait()
			return err
		}
		p := mpi.PrecvInit(world, buf, parts, 0, 0)
		if err := p.Start(); err != nil {
			return err
		}
		if _, err := p.Wait(); err != nil {
			return err
		}
		fmt.Println(buf)
		return nil
	})
	// Output: [0 0 1 1 2 2 3 3]
}

// The even ranks get a communicator.
func ExampleGroup_IncludeRanges() {
	onRanks(4, func(world *mpi.Comm) error {
		even, err := world.Group().IncludeRanges(mpi.Range{First: 0, Last: 3, Stride: 2})
		if err != nil {
			return err
		}
		c, err := world.Create(even)
		if err != nil || c == nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Println("rank", world.Rank(), "is rank 1 of", c.Size())
		}
		return c.Free()
	})
	// Output: rank 2 is rank 1 of 2
}

// Every rank stores its part in the memory of two ranks, and reads it back.
func ExampleCheckpoint() {
	onRanks(2, func(world *mpi.Comm) error {
		if err := mpi.Checkpoint(world, 1, []int{world.Rank(), 10}); err != nil {
			return err
		}
		version, parts, err := mpi.Restore[int](world)
		if err != nil || world.Rank() != 0 {
			return err
		}
		for _, p := range parts {
			fmt.Println("version", version, p.Data[0])
		}
		return nil
	})
	// Output: version 1 [0 10]
}
