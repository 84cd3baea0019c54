package mpi_test

// Examples for go doc. They run on ranks that are goroutines; a real program calls
// mpi.Main instead of onRanks.

import (
	"fmt"
	"log"
	"sync"

	"github.com/muster-mpi/muster/mpi"
)

// onRanks runs fn as each of n ranks.
func onRanks(n int, fn func(world *mpi.Comm) error) {
	worlds, err := mpi.Local(n, nil)
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, w := range worlds {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := fn(w.Comm()); err != nil {
				log.Fatal(err)
			}
			if err := w.Finalize(); err != nil {
				log.Fatal(err)
			}
		}()
	}
	wg.Wait()
}

func ExampleSend() {
	onRanks(2, func(world *mpi.Comm) error {
		if world.Rank() == 0 {
			return mpi.Send(world, []float64{3.5, 4.5}, 1, 7)
		}
		buf := make([]float64, 10)
		st, err := mpi.Recv(world, buf, mpi.AnySource, 7)
		if err != nil {
			return err
		}
		n, _ := mpi.Count[float64](st)
		fmt.Printf("%v from rank %d\n", buf[:n], st.Source)
		return nil
	})
	// Output: [3.5 4.5] from rank 0
}

// Neighbors exchange their numbers; nonblocking calls avoid a deadlock.
func ExampleIsend() {
	onRanks(4, func(world *mpi.Comm) error {
		other := world.Rank() ^ 1
		in := make([]int, 1)
		err := mpi.WaitAll(
			mpi.Irecv(world, in, other, 0),
			mpi.Isend(world, []int{world.Rank()}, other, 0),
		)
		if err == nil && world.Rank() == 3 {
			fmt.Println("rank 3 got", in[0])
		}
		return err
	})
	// Output: rank 3 got 2
}

func ExampleAllreduce() {
	onRanks(4, func(world *mpi.Comm) error {
		sum := []int{world.Rank() + 1}
		if err := mpi.Allreduce(world, sum, sum, mpi.Sum); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("1 + 2 + 3 + 4 =", sum[0])
		}
		return nil
	})
	// Output: 1 + 2 + 3 + 4 = 10
}

// Strings, maps and other types with pointers are sent with SendValue.
func ExampleSendValue() {
	onRanks(2, func(world *mpi.Comm) error {
		if world.Rank() == 0 {
			return mpi.SendValue(world, map[string]int{"apples": 3}, 1, 0)
		}
		stock, _, err := mpi.RecvValue[map[string]int](world, 0, 0)
		if err != nil {
			return err
		}
		fmt.Println(stock)
		return nil
	})
	// Output: map[apples:3]
}

// Ranks with the same color form a communicator.
func ExampleComm_Split() {
	onRanks(4, func(world *mpi.Comm) error {
		half, err := world.Split(world.Rank()/2, world.Rank())
		if err != nil {
			return err
		}
		if world.Rank() == 3 {
			fmt.Printf("rank 3 is rank %d of %d in its half\n", half.Rank(), half.Size())
		}
		return nil
	})
	// Output: rank 3 is rank 1 of 2 in its half
}

// Probe reports the length of a message before it is received.
func ExampleComm_Mprobe() {
	onRanks(2, func(world *mpi.Comm) error {
		if world.Rank() == 0 {
			return mpi.Send(world, []byte("as long as it is"), 1, 0)
		}
		m, st, err := world.Mprobe(0, 0)
		if err != nil {
			return err
		}
		buf := make([]byte, st.Bytes)
		if _, err := mpi.Mrecv(m, buf); err != nil {
			return err
		}
		fmt.Printf("%s\n", buf)
		return nil
	})
	// Output: as long as it is
}
