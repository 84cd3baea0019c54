package mpi_test

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

const asleepProgram = "agree asleep"

// agreeAsleep lets rank 0 sleep in an agreement until rank 2 contributes, which learns of two
// failures later than rank 0: of rank 3, which has not contributed, and of rank 4, which has
// contributed before the first failure, but not after it.
func agreeAsleep(c *mpi.Comm) error {
	pids := make([]int, c.Size())
	if err := mpi.Allgather(c, []int{os.Getpid()}, pids); err != nil {
		return err
	}
	for range 3 { // the first one uses messages, later ones shared memory
		if _, _, err := c.Agree(1); err != nil {
			return err
		}
	}
	scene := make(chan error, 1)
	switch c.Rank() {
	case 0:
		go func() { scene <- failTwice(c, pids) }()
	case 3:
		time.Sleep(time.Minute) // until it is killed
	default:
		scene <- nil
	}
	_, failed, err := c.Agree(1)
	if err == nil {
		err = <-scene
	}
	if slices.Sort(failed); err == nil && !slices.Equal(failed, []int{3, 4}) {
		err = fmt.Errorf("agreed on the failed ranks %v, want 3 and 4", failed)
	}
	if err == nil {
		fmt.Printf("rank %d has agreed\n", c.Rank())
	}
	return err
}

// failTwice kills ranks 3 and 4 while rank 2 cannot learn of it.
func failTwice(c *mpi.Comm, pids []int) error {
	// No call shows whether the others sleep in the agreement. If they do not yet, what follows
	// is another order of events that must end, too.
	time.Sleep(300 * time.Millisecond)
	steps := []struct {
		signal func(pid int) error
		rank   int
		failed int // that rank 0 knows then
	}{{signalStop, 2, 0}, {signalStop, 4, 0}, {signalKill, 3, 1}, {signalKill, 4, 2}, {signalContinue, 2, 2}}
	for _, s := range steps {
		if err := s.signal(pids[s.rank]); err != nil {
			return fmt.Errorf("send a signal to rank %d: %w", s.rank, err)
		}
		for len(c.Failed()) < s.failed {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}
