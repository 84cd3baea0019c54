package mpi_test

// The program of the tests in win_death_linux_test.go.

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// windowProgram is the prefix of the programs below; the rest names the call.
const windowProgram = "window "

// windowCalls are repeated in an epoch of LockAll, except for Lock itself.
var windowCalls = map[string]func(w *mpi.Win[int64], target int) error{
	"Lock": func(w *mpi.Win[int64], target int) error {
		if err := w.Lock(target, mpi.LockExclusive); err != nil {
			return err
		}
		return w.Unlock(target)
	},
	"Put": func(w *mpi.Win[int64], target int) error { return w.Put([]int64{1}, target, 0) },
	"Get": func(w *mpi.Win[int64], target int) error { return w.Get(make([]int64, 1), target, 0) },
	"Accumulate": func(w *mpi.Win[int64], target int) error {
		return w.Accumulate([]int64{1}, target, 0, mpi.Sum)
	},
	"FetchAndOp": func(w *mpi.Win[int64], target int) error {
		var was int64
		return w.FetchAndOp(1, &was, target, 0, mpi.Sum)
	},
	"CompareAndSwap": func(w *mpi.Win[int64], target int) error {
		var was int64
		return w.CompareAndSwap(0, 1, &was, target, 0)
	},
	"Flush": func(w *mpi.Win[int64], target int) error { return w.Flush(target) },
}

// workOnWindow: rank VICTIM ends its process, and the other rank works on its memory
// until a call fails.
func workOnWindow(world *mpi.Comm, name string) error {
	victim := int(os.Getenv("VICTIM")[0] - '0')
	w, err := mpi.AllocateWin[int64](world, 1)
	if err != nil {
		return err
	}
	if !w.Direct(victim) {
		return errors.New("the window is not in shared memory")
	}
	if err := world.Barrier(); err != nil {
		return err
	}
	if world.Rank() == victim {
		time.Sleep(100 * time.Millisecond) // until the other rank uses the window
		killSelf()
	}
	if name != "Lock" {
		if err := w.LockAll(); err != nil {
			return err
		}
	}
	call := windowCalls[name]
	for begin := time.Now(); time.Since(begin) < 5*time.Second; {
		if err := call(w, victim); err != nil {
			fmt.Printf("rank %d reports: %v\n", world.Rank(), err)
			return err
		}
	}
	fmt.Printf("rank %d saw no error\n", world.Rank())
	os.Exit(7)
	return nil
}
