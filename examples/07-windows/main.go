// Windows distributes jobs by one-sided communication: the number of the next job is in
// the memory of rank 0, and an idle rank takes it by fetch-and-add. Results are put into
// a table of rank 0, each at its index. Rank 0 works like the others; it need not take
// part in their accesses to its memory.
//
// Compare 05-work-queue, where rank 0 receives requests and sends answers.
//
//	muster run -n 4 ./windows
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/muster-mpi/muster/mpi"
)

const jobs = 200

func main() {
	mpi.Main(func(world *mpi.Comm) error { return run(world, os.Stdout) })
}

func run(world *mpi.Comm, out io.Writer) error {
	// Rank 0 has the table: the number of the next job, then a result for each job. The
	// others have no memory in the window.
	n := 0
	if world.Rank() == 0 {
		n = 1 + jobs
	}
	table, err := mpi.AllocateWin[int64](world, n)
	if err != nil {
		return err
	}
	if err := work(table); err != nil {
		return err
	}
	// After the barrier all ranks have ended their epochs, so all results are in the table.
	if err := world.Barrier(); err != nil {
		return err
	}
	if world.Rank() == 0 {
		total := int64(0)
		for _, steps := range table.Memory()[1:] {
			total += steps
		}
		fmt.Fprintf(out, "%d jobs took %d steps in all\n", jobs, total)
	}
	return table.Free()
}

// work takes jobs until there are no more.
func work(table *mpi.Win[int64]) error {
	// A shared lock: several ranks may access the table at once, at different indices.
	if err := table.Lock(0, mpi.LockShared); err != nil {
		return err
	}
	for {
		var job int64
		if err := table.FetchAndOp(1, &job, 0, 0, mpi.Sum); err != nil {
			return err
		}
		if err := table.Flush(0); err != nil { // job is set after this
			return err
		}
		if job >= jobs {
			return table.Unlock(0)
		}
		result := []int64{collatz(job + 1)}
		if err := table.Put(result, 0, 1+int(job)); err != nil {
			return err
		}
	}
}

// collatz counts the steps until n is 1.
func collatz(n int64) (steps int64) {
	for ; n != 1; steps++ {
		if n%2 == 0 {
			n /= 2
		} else {
			n = 3*n + 1
		}
	}
	return steps
}
