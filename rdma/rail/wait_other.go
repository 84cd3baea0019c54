//go:build !linux

package rail

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// On systems where rails have no file to sleep on, sleeps are short, and a wakeup is a
// channel.

// waitState is how a completion queue is waited for.
type waitState struct {
	nap     nap
	wakeups [numWaiters]chan struct{}
	asleep  bool
	armed   time.Duration
}

func (r *waitState) open(who waiter) error {
	for w := range who {
		r.wakeups[w] = make(chan struct{}, 1)
	}
	return nil
}

func (r *waitState) watch(rdma.CQ) error                            { return nil }
func (r *waitState) forget(rdma.CQ)                                 {}
func (r *waitState) prepareSleep(limit time.Duration) time.Duration { return min(limit, r.nap.next()) }
func (r *waitState) endSleep()                                      {}
func (r *waitState) drain(waiter)                                   {}
func (r *waitState) close() error                                   { return nil }

// wait sleeps until signal is called or the timeout expires.
func (r *waitState) wait(w waiter, timeout time.Duration) error {
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-r.wakeups[w]:
	case <-t.C:
	}
	return nil
}

// waitWakeup sleeps until signal is called.
func (r *waitState) waitWakeup(w waiter) { <-r.wakeups[w] }

// signal ends the current wait, or the next one.
func (r *waitState) signal(w waiter) {
	select {
	case r.wakeups[w] <- struct{}{}:
	default:
	}
}
