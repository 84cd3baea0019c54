//go:build !linux

package rail

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Where rails have no files to sleep on, a sleep is short, and a bell is a channel.

// rest is how a completion queue is waited for.
type rest struct {
	nap    nap
	bells  [waiters]chan struct{}
	asleep bool
	armed  time.Duration
}

func (r *rest) open(who waiter) error {
	for w := range who {
		r.bells[w] = make(chan struct{}, 1)
	}
	return nil
}

func (r *rest) watch(rdma.CQ) error                      { return nil }
func (r *rest) forget(rdma.CQ)                           {}
func (r *rest) settle(limit time.Duration) time.Duration { return min(limit, r.nap.next()) }
func (r *rest) unsettle()                                {}
func (r *rest) hush(waiter)                              {}
func (r *rest) close() error                             { return nil }

// wait sleeps until the bell was rung, or for so long.
func (r *rest) wait(w waiter, timeout time.Duration) error {
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-r.bells[w]:
	case <-t.C:
	}
	return nil
}

// waitForBell sleeps until the bell was rung.
func (r *rest) waitForBell(w waiter) { <-r.bells[w] }

// ring ends a wait, or the next one.
func (r *rest) ring(w waiter) {
	select {
	case r.bells[w] <- struct{}{}:
	default:
	}
}
