package mpi_test

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
)

// TestWaitUnderWay reads the time of waiting while a rank is in a call that waits, as the
// metrics of a job do.
func TestWaitUnderWay(t *testing.T) {
	for name, call := range map[string]func(c *mpi.Comm) error{
		"Barrier":   (*mpi.Comm).Barrier,
		"Allreduce": func(c *mpi.Comm) error { return mpi.Allreduce(c, nil, []int{1}, mpi.Sum) },
		"Sendrecv": func(c *mpi.Comm) error {
			_, err := mpi.Sendrecv(c, []int{1}, 1-c.Rank(), 0, []int{0}, 1-c.Rank(), 0)
			return err
		},
	} {
		for _, check := range []bool{false, true} {
			worlds, err := mpi.Local(2, &mpi.Config{Check: check})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 2)
			waits := func() time.Duration {
				p := worlds[0].Profile()
				return time.Duration(p.Of(prof.TimeWaiting))
			}
			before, began := waits(), time.Now()
			go func() { done <- call(worlds[0].Comm()) }()
			last, counted := before, false
			for time.Since(began) < 10*time.Second && !counted {
				time.Sleep(5 * time.Millisecond) // a wait that takes time
				now := waits()
				if now < last || now-before > time.Since(began) {
					t.Errorf("%s, check %v: the counter goes from %v to %v after %v", name, check, last, now, time.Since(began))
				}
				last, counted = now, now-before > 50*time.Millisecond
			}
			if !counted {
				t.Errorf("%s, check %v: %v of a wait that has taken %v are counted", name, check, last-before, time.Since(began))
			}
			go func() { done <- call(worlds[1].Comm()) }()
			for range 2 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			if now := waits(); now < last || now-before > time.Since(began) {
				t.Errorf("%s, check %v: the counter goes from %v to %v after the wait", name, check, last, now)
			}
			for _, w := range worlds {
				go func() { done <- w.Finalize() }()
			}
			for range worlds {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		}
	}
}
