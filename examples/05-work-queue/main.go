// Work-queue distributes jobs of very different length to idle workers.
//
// Rank 0 has the jobs; the others request a job, work, and request the next. Rank 0
// receives from AnySource, because any worker may be the first to finish. The tag of a
// reply distinguishes a job from the end of the work.
//
// Each worker has several goroutines, and all of them call the library at the same
// time: every call may be made from any goroutine. Each goroutine has its own tag, so
// that it receives its own replies.
//
//	muster run -n 4 ./work-queue
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/muster-mpi/muster/mpi"
)

const (
	jobs    = 200
	helpers = 3 // goroutines of each worker
)

func main() {
	mpi.Main(func(world *mpi.Comm) error { return run(world, os.Stdout) })
}

func run(world *mpi.Comm, out io.Writer) error {
	if world.Size() == 1 { // no workers
		total := 0
		for n := range jobs {
			total += collatz(n + 1)
		}
		return report(out, total)
	}
	if world.Rank() > 0 {
		return work(world)
	}
	total, err := deal(world)
	if err != nil {
		return err
	}
	return report(out, total)
}

func report(out io.Writer, total int) error {
	_, err := fmt.Fprintf(out, "%d jobs took %d steps in all\n", jobs, total)
	return err
}

// request is sent by a helper: its number, and the result of its last job.
type request struct{ Helper, Found int32 }

// done is sent instead of a job when there are none left.
const done = 0

// deal answers requests until every helper has received done.
func deal(world *mpi.Comm) (total int, err error) {
	next := 1
	for active := (world.Size() - 1) * helpers; active > 0; {
		ask := make([]request, 1)
		st, err := mpi.Recv(world, ask, mpi.AnySource, mpi.AnyTag)
		if err != nil {
			return 0, err
		}
		total += int(ask[0].Found)
		job := []int32{done}
		if next <= jobs {
			job[0] = int32(next)
			next++
		} else {
			active--
		}
		if err := mpi.Send(world, job, st.Source, int(ask[0].Helper)); err != nil {
			return 0, err
		}
	}
	return total, nil
}

// work runs the helpers of one rank.
func work(world *mpi.Comm) error {
	ended := make(chan error, helpers)
	for h := range helpers {
		go func() { ended <- help(world, h) }()
	}
	var errs []error
	for range helpers {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

func help(world *mpi.Comm, me int) error {
	ask, job := []request{{Helper: int32(me)}}, make([]int32, 1)
	for {
		if err := mpi.Send(world, ask, 0, me); err != nil {
			return err
		}
		if _, err := mpi.Recv(world, job, 0, me); err != nil {
			return err
		}
		if job[0] == done {
			return nil
		}
		ask[0].Found = int32(collatz(int(job[0])))
	}
}

// collatz counts the steps to 1: n/2 for even n, 3n+1 for odd n.
func collatz(n int) (steps int) {
	for ; n > 1; steps++ {
		if n%2 == 0 {
			n /= 2
		} else {
			n = 3*n + 1
		}
	}
	return steps
}
