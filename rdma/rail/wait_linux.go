package rail

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// Sleeping on several rails: each has a file (rdma.FileCQ), and an epoll set of these
// and an eventfd is a file again. Each waiter has its own set, because each has its own
// eventfd.

var _ rdma.FileCQ = (*queue)(nil)

// waitState is how a completion queue is waited for.
type waitState struct {
	nap         nap
	files       []rdma.FileCQ
	withoutFile int // rails without a file
	sets        [numWaiters]int
	wakeups     [numWaiters]int
	closed      atomic.Bool
	asleep      bool          // between sleep and awake
	armed       time.Duration // how long WaitArmed may sleep
	prepared    int           // files on which Sleep was called
	// Arguments of ppoll, for each waiter, kept here to avoid an allocation per call.
	shown  [numWaiters][1]unix.PollFd
	limits [numWaiters]unix.Timespec
}

// open opens the descriptors of all waiters before who.
func (r *waitState) open(who waiter) error {
	for w := range numWaiters {
		r.sets[w], r.wakeups[w] = -1, -1
	}
	for w := range who {
		var err error
		if r.sets[w], err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
			if r.wakeups[w], err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err == nil {
				err = r.add(r.sets[w], r.wakeups[w])
			}
		}
		if err != nil {
			return errors.Join(fmt.Errorf("rail: get descriptors to sleep on: %w; see ulimit -n", err), r.close())
		}
	}
	return nil
}

func (r *waitState) add(set, fd int) error {
	return unix.EpollCtl(set, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// watch adds a rail.
func (r *waitState) watch(below rdma.CQ) error {
	f, ok := below.(rdma.FileCQ)
	if !ok {
		r.withoutFile++
		return nil
	}
	for w := range numWaiters {
		if r.sets[w] < 0 {
			continue
		}
		if err := r.add(r.sets[w], f.File()); err != nil {
			return fmt.Errorf("rail: sleep on a rail: %w", err)
		}
	}
	r.files = append(r.files, f)
	return nil
}

// forget undoes watch, before the rail's queue is closed.
func (r *waitState) forget(below rdma.CQ) {
	f, ok := below.(rdma.FileCQ)
	if !ok {
		if below != nil {
			r.withoutFile--
		}
		return
	}
	for i := range r.files {
		if r.files[i] != f {
			continue
		}
		if r.asleep {
			r.asleep = false
			r.endSleep()
		}
		for w := range numWaiters {
			_ = unix.EpollCtl(r.sets[w], unix.EPOLL_CTL_DEL, f.File(), nil) // closing it does the same
		}
		r.files = append(r.files[:i], r.files[i+1:]...)
		return
	}
}

// prepareSleep prepares all rails for a sleep.
func (r *waitState) prepareSleep(limit time.Duration) time.Duration {
	if r.withoutFile > 0 {
		limit = min(limit, r.nap.next())
	}
	for _, f := range r.files {
		if limit <= 0 {
			break
		}
		limit = min(limit, f.Sleep(limit))
		r.prepared++
	}
	return limit
}

// endSleep ends it.
func (r *waitState) endSleep() {
	for _, f := range r.files[:min(r.prepared, len(r.files))] {
		f.Awake()
	}
	r.prepared = 0
}

// wait sleeps until a rail has something or signal is called.
func (r *waitState) wait(w waiter, timeout time.Duration) error {
	r.shown[w][0] = unix.PollFd{Fd: int32(r.sets[w]), Events: unix.POLLIN}
	r.limits[w] = unix.NsecToTimespec(int64(timeout))
	if _, err := unix.Ppoll(r.shown[w][:], &r.limits[w], nil); err != nil && err != unix.EINTR && !r.closed.Load() {
		return fmt.Errorf("rail: wait for the rails: %w", err)
	}
	return nil
}

// waitWakeup sleeps until signal is called.
func (r *waitState) waitWakeup(w waiter) {
	r.shown[w][0] = unix.PollFd{Fd: int32(r.wakeups[w]), Events: unix.POLLIN}
	_, _ = unix.Ppoll(r.shown[w][:], nil, nil) // a signal may end it early
}

// signal ends the current wait, or the next one.
func (r *waitState) signal(w waiter) {
	if !r.closed.Load() {
		one := [8]byte{1}
		_, _ = unix.Write(r.wakeups[w], one[:]) // fails only when the counter is full
	}
}

func (r *waitState) drain(w waiter) {
	if !r.closed.Load() {
		var n [8]byte
		_, _ = unix.Read(r.wakeups[w], n[:]) // fails when it was not signaled
	}
}

func (r *waitState) close() (err error) {
	r.closed.Store(true)
	for w := range numWaiters {
		for _, fd := range []int{r.sets[w], r.wakeups[w]} {
			if fd >= 0 {
				err = errors.Join(err, unix.Close(fd))
			}
		}
	}
	return err
}

// File returns a descriptor that is readable when a rail has something or Wake was
// called.
func (c *queue) File() int { return c.waitState.sets[pollWaiter] }

// Sleep prepares a sleep on File and returns how long it may last.
func (c *queue) Sleep(limit time.Duration) time.Duration {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	if c.closed || c.dev.closed {
		return 0
	}
	c.dev.called()
	c.awake()
	limit = c.sleep(limit)
	if limit > 0 && !c.filed {
		c.filed = true
		c.park()
	}
	return limit
}

// Awake ends the sleep.
func (c *queue) Awake() {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	if c.filed {
		c.filed = false
		c.unpark()
	}
	c.awake()
	c.waitState.drain(pollWaiter)
}
