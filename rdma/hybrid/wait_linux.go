package hybrid

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// Waiting for both devices at once: an epoll descriptor holds the files of their queues
// and an event fd that Wake sets.

var (
	_ rdma.FileCQ  = (*queue)(nil)
	_ rdma.ArmedCQ = (*queue)(nil)
)

// deferredDelay is the longest sleep while deferred work waits for room.
const deferredDelay = 500 * time.Microsecond

// sleep is the state for waiting on a queue.
type sleep struct {
	epoll   int
	eventFD int

	mu    sync.Mutex // Wake may be called at any time
	rung  bool
	ended bool

	// The arguments of the system call for each of the two possible waiters; they would
	// otherwise be allocated each time.
	shown [waiters]shown
	count [8]byte
}

type shown struct {
	reportSeen [1]unix.PollFd
	limit      unix.Timespec
}

type waiter int

const (
	whoPolls waiter = iota
	whoStandsBy
	waiters
)

// files returns the descriptors of the queues below.
func (q *queue) files() []int {
	var list []int
	for _, cq := range []rdma.CQ{q.rd, q.rc} {
		if f, ok := cq.(rdma.FileCQ); ok {
			list = append(list, f.File())
		}
	}
	return list
}

func (s *sleep) open(files []int) (err error) {
	s.eventFD = -1
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		s.eventFD, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	}
	for _, fd := range append(files, s.eventFD) {
		if err == nil {
			err = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
		}
	}
	if err != nil {
		s.close()
		return fmt.Errorf("hybrid: create the epoll instance of a completion queue: %w; see the limit of open files (ulimit -n)", err)
	}
	return nil
}

func (s *sleep) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	for _, fd := range []int{s.eventFD, s.epoll} {
		if fd >= 0 {
			_ = unix.Close(fd) // nothing was written
		}
	}
}

// Wake ends a Wait.
func (q *queue) Wake() {
	s := &q.sleeper
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.rung {
		return
	}
	s.rung = true
	one := [8]byte{1}
	_, _ = unix.Write(s.eventFD, one[:]) // a full counter means that a wake-up is pending anyway
}

// File returns a descriptor that is readable when Poll may have something to do.
func (q *queue) File() int { return q.sleeper.epoll }

// Sleep prepares a sleep on File.
func (q *queue) Sleep(limit time.Duration) time.Duration {
	limit = q.rd.(rdma.FileCQ).Sleep(limit)
	if q.rc != nil {
		limit = min(limit, q.rc.(rdma.FileCQ).Sleep(limit))
	}
	switch d := q.dev; {
	case d.hasResults.Load() || q.hasExtra.Load():
		return 0
	case q.hasLoans.Load(): // a peer may wait for those buffers, and no socket indicates it
		return 0
	case d.deferredWork.Load() > 0:
		limit = min(limit, deferredDelay)
	}
	return limit
}

// Awake ends the sleep.
func (q *queue) Awake() {
	q.rd.(rdma.FileCQ).Awake()
	if q.rc != nil {
		q.rc.(rdma.FileCQ).Awake()
	}
	q.slept.Store(true)
	s := &q.sleeper
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rung && !s.ended {
		_, _ = unix.Read(s.eventFD, s.count[:]) // it only has to be 0 again
		s.rung = false
	}
}

// Wait blocks until one of the devices has something, or needs to be polled.
func (q *queue) Wait(timeout time.Duration) error { return q.wait(whoPolls, timeout) }

func (q *queue) wait(who waiter, timeout time.Duration) error {
	if q.over() {
		return rdma.ErrClosed
	}
	defer q.Awake()
	timeout = q.Sleep(timeout)
	if timeout <= 0 {
		return nil
	}
	s := &q.sleeper.shown[who]
	s.reportSeen[0] = unix.PollFd{Fd: int32(q.sleeper.epoll), Events: unix.POLLIN}
	s.limit = unix.NsecToTimespec(int64(timeout))
	if _, err := unix.Ppoll(s.reportSeen[:], &s.limit, nil); err != nil && err != unix.EINTR {
		return fmt.Errorf("hybrid: wait for datagrams and connections: %w", err)
	}
	return nil
}

func (q *queue) over() bool {
	q.sleeper.mu.Lock()
	defer q.sleeper.mu.Unlock()
	return q.sleeper.ended
}

// Arm prepares WaitArmed.
func (q *queue) Arm() bool {
	if q.closed || q.dev.hasResults.Load() || q.hasExtra.Load() || q.hasLoans.Load() {
		return false
	}
	return q.rd.(rdma.ArmedCQ).Arm() && (q.rc == nil || q.rc.(rdma.ArmedCQ).Arm())
}

// armedDelay is the longest sleep of WaitArmed: timers that begin meanwhile do not wake
// it.
const armedDelay = 50 * time.Millisecond

// WaitArmed is Wait after Arm, concurrent with Poll or Wait.
func (q *queue) WaitArmed(timeout time.Duration) error {
	return q.wait(whoStandsBy, min(timeout, armedDelay))
}
