//go:build !linux

package soft

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// On systems without descriptors to sleep on, a waker is a channel, and a device is polled
// now and then.

func (s *source) readable() bool { return false }

type waker struct {
	c chan struct{}
}

func (w *waker) open() error {
	w.c = make(chan struct{}, 1)
	return nil
}

func (w *waker) sleep(s *source, timeout time.Duration) error {
	if s != nil {
		timeout = min(timeout, unwatched)
	}
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-w.c:
	case <-t.C:
	}
	return nil
}

func (w *waker) signal() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

func (w *waker) clear() {
	select {
	case <-w.c:
	default:
	}
}

func (w *waker) close() {}

type file struct {
	fd      int
	watches bool
}

func (f *file) open(*waker, *source) {}
func (f *file) close()               {}

// Set is empty on this system: queues have no files.
type Set struct{}

const readableEvent = 1

// Open does nothing.
func (s *Set) Open() error { return nil }

// FD returns -1.
func (s *Set) FD() int { return -1 }

// Watch returns ErrUnsupported.
func (s *Set) Watch(int, uint32, uint32) error { return rdma.ErrUnsupported }

// Close does nothing.
func (s *Set) Close() {}
