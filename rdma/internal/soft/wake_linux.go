//go:build !muster_portable

package soft

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// source is the descriptor on which a device sleeps: a socket, or a Set.
type source struct {
	fd      int // -1: none
	trouble *atomic.Bool
}

// readable reports whether something has arrived.
func (s *source) readable() bool {
	one := [1]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	n, err := unix.Ppoll(one[:], &unix.Timespec{}, nil)
	return n > 0 || err != nil
}

// waker ends a sleep on a source. Any goroutine may signal it at any time, even after
// close.
type waker struct {
	event  int
	mu     sync.Mutex
	set    bool // the event is set
	closed bool

	// Arguments of system calls, kept here to avoid an allocation per call.
	fds   [2]unix.PollFd
	limit unix.Timespec
	count [8]byte
}

func (w *waker) open() (err error) {
	if w.event, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		w.closed = true
		return fmt.Errorf("eventfd: %w", err)
	}
	return nil
}

// sleep blocks until something arrives, signal is called, or the timeout expires. Without
// a source it waits for signal alone. It uses ppoll because timers of devices are finer
// than epoll's milliseconds.
func (w *waker) sleep(s *source, timeout time.Duration) error {
	fds := &w.fds
	*fds = [2]unix.PollFd{{Fd: int32(w.event), Events: unix.POLLIN}, {Fd: -1}}
	if s != nil {
		fds[1] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
	}
	w.limit = unix.NsecToTimespec(int64(timeout))
	_, err := unix.Ppoll(fds[:], &w.limit, nil)
	if fds[1].Revents&unix.POLLERR != 0 && s.trouble != nil {
		s.trouble.Store(true)
	}
	if fds[0].Revents != 0 {
		w.clear()
	}
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("ppoll: %w", err)
	}
	return nil
}

// signal ends the current sleep, or the next one.
func (w *waker) signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.set {
		return
	}
	w.set = true
	one := [8]byte{1}
	_, _ = unix.Write(w.event, one[:]) // cannot fail: the counter is 0
}

// clear undoes signal.
func (w *waker) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.set && !w.closed {
		_, _ = unix.Read(w.event, w.count[:]) // cannot fail: the counter is 1
		w.set = false
	}
}

func (w *waker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		_ = unix.Close(w.event) // nothing was written
	}
}

const notifyFile = rdma.NotifyFile

// file is a descriptor for callers that sleep on several devices at once. The source joins
// it when it is first asked for, because that makes each arrival slightly more expensive.
type file struct {
	fd      int
	watches bool // it reports arrivals
}

func (f *file) open(w *waker, s *source) {
	if f.fd >= 0 {
		return
	}
	var set Set
	if set.Open() != nil {
		return
	}
	if set.Watch(w.event, 0, readableEvent) != nil {
		set.Close()
		return
	}
	f.fd, f.watches = set.epoll, set.Watch(s.fd, 0, readableEvent) == nil
}

func (f *file) close() {
	if f.fd >= 0 {
		_ = unix.Close(f.fd) // nothing was written
		f.fd = -1
	}
}

// Set is a set of descriptors that serves as a source.
type Set struct{ epoll int }

const readableEvent = unix.EPOLLIN

// Open opens the set.
func (s *Set) Open() (err error) {
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll_create1: %w; see the limit of open files (ulimit -n)", err)
	}
	return nil
}

// FD returns the descriptor of the set.
func (s *Set) FD() int { return s.epoll }

// Watch changes the events of a descriptor from one set to another; 0 is none.
func (s *Set) Watch(fd int, from, to uint32) error {
	switch {
	case from == to:
		return nil
	case from == 0:
		return s.control(unix.EPOLL_CTL_ADD, fd, to)
	case to == 0:
		return s.control(unix.EPOLL_CTL_DEL, fd, 0)
	}
	return s.control(unix.EPOLL_CTL_MOD, fd, to)
}

func (s *Set) control(op, fd int, events uint32) error {
	if err := unix.EpollCtl(s.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// Close closes the set.
func (s *Set) Close() {
	_ = unix.Close(s.epoll) // nothing was written
}
