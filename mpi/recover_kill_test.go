package mpi_test

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

const recoverProgram = "recover"

// recoverOrDie is the program of TestRecoverProcesses. Each process knows from its environment
// when it is killed, in microseconds after it has joined the job.
func recoverOrDie(world *mpi.Comm) error {
	who := os.Getenv("PMI_RANK")
	if parent := os.Getenv("MUSTER_PARENT"); parent != "" { // in place of a failed rank
		who = "later"
		if strings.Contains(parent, `"Generation":1,`) {
			who = "second"
		}
	}
	for entry := range strings.FieldsSeq(os.Getenv("KILLS")) {
		if rank, after, _ := strings.Cut(entry, ":"); rank == who {
			d, err := time.ParseDuration(after)
			if err != nil {
				return err
			}
			time.AfterFunc(d, killNow)
		}
	}
	return mpi.Recover(func(c *mpi.Comm, a mpi.Attempt) error {
		row, err := c.Split(c.Rank()%2, 0)
		if err != nil {
			return err
		}
		for range 20_000 {
			if err := reduceRanks(row); err != nil {
				return err
			}
			if err := reduceRanks(c); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			fmt.Printf("attempt %d: done with %d ranks\n", a.Number, c.Size())
		}
		return nil
	})(world)
}
