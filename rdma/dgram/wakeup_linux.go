package dgram

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A wakeup ends a wait on the socket. Any goroutine may call signal at any time, even
// after close. It is an eventfd, and an epoll set that holds the eventfd, for callers
// that sleep on several devices at once. The socket joins the epoll set when File is
// first called, because it makes each datagram slightly more expensive.

type wakeup struct {
	event, epoll int
	mu           sync.Mutex
	closed       bool
	watches      bool // the socket is in the epoll set

	// Arguments of system calls in wait and drain, kept here to avoid an allocation per
	// call.
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

// file returns a descriptor that is readable after signal. If watches is true, it is
// also readable when a datagram has arrived.
func (b *wakeup) file(s *socket) (fd int, watches bool) {
	if !b.watches {
		b.watches = b.watch(s.fd) == nil
	}
	return b.epoll, b.watches
}

// wait blocks until a datagram arrives, signal is called, or the timeout expires.
// Without a socket it waits for signal alone. It uses ppoll because the device's timers
// are finer than epoll's milliseconds.
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

// drain clears the eventfd.
func (b *wakeup) drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		_, _ = unix.Read(b.event, b.count[:]) // nonblocking; an error means that it was clear
	}
}

// signal ends the current wait, or the next one.
func (b *wakeup) signal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(b.event, one[:]) // an error means that the counter is full: it is signaled already
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
