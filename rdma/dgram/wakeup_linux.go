package dgram

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A wakeup wakes one who sleeps beside the socket. ring may come from any goroutine at any
// time, even when the wakeup is closed. It is an event, and an epoll descriptor with that
// event in it, for those who sleep on several devices at once. The socket joins the event
// there when somebody asks for it: then every datagram costs a little more.

type wakeup struct {
	event, epoll int
	mu           sync.Mutex
	closed       bool
	watches      bool // the socket is in epoll too

	// For the calls of the one who waits, and of drain: what the kernel is shown would
	// otherwise be allocated each time.
	fds   [2]unix.PollFd
	limit unix.Timespec
	count [8]byte
}

func (b *wakeup) open() (err error) {
	b.event, b.epoll = -1, -1
	if b.event, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	if b.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		b.close()
		return fmt.Errorf("epoll_create1: %w", err)
	}
	if err = b.watch(b.event); err != nil {
		b.close()
	}
	return err
}

func (b *wakeup) watch(fd int) error {
	if err := unix.EpollCtl(b.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// file is readable when the wakeup was rung, or a datagram has come if watches is true.
func (b *wakeup) file(s *socket) (fd int, watches bool) {
	if !b.watches {
		b.watches = b.watch(s.fd) == nil
	}
	return b.epoll, b.watches
}

// wait parks until a datagram has come, the wakeup was rung, or the time is over. Without
// a socket it waits for the wakeup alone. It uses the clock of ppoll because timers of the
// device are finer than the milliseconds of epoll.
func (b *wakeup) wait(s *socket, timeout time.Duration) error {
	fds := &b.fds
	*fds = [2]unix.PollFd{{Fd: int32(b.event), Events: unix.POLLIN}, {Fd: -1}}
	if s != nil {
		fds[1] = unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN}
	}
	b.limit = unix.NsecToTimespec(max(timeout, 0).Nanoseconds())
	_, err := unix.Ppoll(fds[:], &b.limit, nil)
	if fds[1].Revents&unix.POLLERR != 0 {
		s.troubled.Store(true)
	}
	if fds[0].Revents != 0 {
		b.drain()
	}
	if err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("ppoll: %w", err)
	}
	return nil
}

// drain takes back what ring has done.
func (b *wakeup) drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		_, _ = unix.Read(b.event, b.count[:]) // it does not block, and only its end counts
	}
}

// signal ends a wait, this one or the next.
func (b *wakeup) signal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(b.event, one[:]) // full means that it was rung often enough
}

func (b *wakeup) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	for _, fd := range []int{b.event, b.epoll} {
		if fd >= 0 {
			_ = unix.Close(fd) // nothing can be done about it
		}
	}
}
