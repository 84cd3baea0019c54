package mpi_test

// The program of TestKillMatrix and of tests/channels. In each step a rank is killed while
// all ranks make one kind of call, the others get an error that names it, and go on without
// it. Its name has the form "kill matrix VICTIM FROM TO": which rank of the communicator is
// killed, and the numbers of the first step and of the one after the last.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

const killProgram = "kill matrix "

// killVictims are the ranks that are killed. With four ranks on each of four hosts, the first
// is rank 0, and the one in the middle is the first of its host.
var killVictims = map[string]func(c *mpi.Comm) int{
	"first":  func(*mpi.Comm) int { return 0 },
	"middle": func(c *mpi.Comm) int { return c.Size() / 2 },
	"last":   func(c *mpi.Comm) int { return c.Size() - 1 },
}

// killDir names the variable with a directory, common to all ranks, in which a victim records
// when it is killed.
const killDir = "KILL_DIR"

func killMatrix(world *mpi.Comm, program string) error {
	var who string
	var from, to int
	if _, err := fmt.Sscan(program, &who, &from, &to); err != nil {
		return err
	}
	choose := killVictims[who]
	if choose == nil || from < 0 || to > len(killSteps) {
		return fmt.Errorf("there is no %q among the programs", program)
	}
	c, left := world, make([]int, world.Size())
	for r := range left {
		left[r] = r
	}
	for n := from; n < to; n++ {
		victim := choose(c)
		killed := ""
		if dir := os.Getenv(killDir); dir != "" {
			killed = filepath.Join(dir, fmt.Sprint("step", n))
		}
		s, after, err := killStep{victim, left[victim], 20 * time.Millisecond, killed}.run(c, killSteps[n].make)
		if err != nil {
			return fmt.Errorf("%s: %w", killSteps[n].name, err)
		}
		left = slices.Delete(left, victim, victim+1)
		if c = s; c.Rank() == 0 {
			fmt.Printf("%s: %d ranks left, error after %v\n", killSteps[n].name, c.Size(), after.Round(time.Millisecond))
		}
	}
	if err := sameOrder(world, c); err != nil {
		return err
	}
	if c.Size() < 2 {
		return errors.New("too few ranks")
	}
	if c.Rank() == 1 {
		killNow() // while the others are in Finalize
	}
	return nil
}

// killStep kills a rank of a communicator during a call.
type killStep struct {
	victim, name int // its rank there and in the world
	delay        time.Duration
	killed       string // file with the time when it is killed, or ""
}

// run returns the communicator of the others and how long after the exit the last of them got its
// error.
func (k killStep) run(c *mpi.Comm, prepare func(c *mpi.Comm, victim int) (func(n int) error, error)) (s *mpi.Comm, after time.Duration, err error) {
	victim, name, killed := k.victim, k.name, k.killed
	call, err := prepare(c, victim)
	if err != nil {
		return nil, 0, err
	}
	// A slow rank may still be in a call that the others have left; it would fail there.
	if _, _, err := c.Agree(0); err != nil {
		return nil, 0, err
	}
	begin := time.Now()
	if c.Rank() == victim {
		time.AfterFunc(k.delay, func() {
			if killed != "" {
				_ = os.WriteFile(killed, []byte(time.Now().Format(time.RFC3339Nano)), 0o600) // the others report it
			}
			killNow()
		})
	}
	for n := 0; err == nil && time.Since(begin) < 20*time.Second; n++ {
		err = call(n)
	}
	if c.Rank() == victim {
		select {} // until it is killed
	}
	if err := isFailure(err, name); err != nil {
		return nil, 0, err
	}
	took := time.Since(begin)
	if killed != "" {
		text, err := os.ReadFile(killed)
		if err != nil {
			return nil, 0, err
		}
		at, err := time.Parse(time.RFC3339Nano, string(text))
		if err != nil {
			return nil, 0, err
		}
		took = time.Since(at)
	}
	if _, failed, err := c.Agree(0); err != nil || len(failed) != 1 || failed[0] != victim {
		return nil, 0, fmt.Errorf("the ranks agree on the failed ranks %v (%v), want rank %d", failed, err, victim)
	}
	if err := c.Revoke(); err != nil {
		return nil, 0, err
	}
	if s, err = c.Shrink(); err != nil {
		return nil, 0, err
	}
	sum := []int{0}
	if err := mpi.Allreduce(s, []int{1 << s.Rank()}, sum, mpi.Sum); err != nil || sum[0] != 1<<s.Size()-1 {
		return nil, 0, fmt.Errorf("the sum of the %d ranks left is %d: %w", s.Size(), sum[0], err)
	}
	longest := []int64{0}
	err = mpi.Allreduce(s, []int64{int64(took)}, longest, mpi.Max)
	return s, time.Duration(longest[0]), err
}

// sameOrder checks that the ranks left have learned of the failures in the same order.
func sameOrder(world, left *mpi.Comm) error {
	mine := world.Failed()
	theirs := slices.Clone(mine)
	if err := mpi.Bcast(left, theirs, 0); err != nil {
		return err
	}
	if !slices.Equal(mine, theirs) {
		return fmt.Errorf("the ranks have learned of failures in different orders: %v and, at rank 0, %v", mine, theirs)
	}
	_, _, err := left.Agree(0) // another rank may fail when one has returned
	return err
}

func killNow() {
	p, _ := os.FindProcess(os.Getpid())
	_ = p.Kill()
}
