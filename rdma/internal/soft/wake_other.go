//go:build !linux || muster_portable

package soft

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Systems without descriptors to sleep on, as far as this package uses them: a waker is a
// channel. A device whose goroutines read its sockets reports what they have read
// (ReportArrival); another one is polled now and then.

// source is what a device sleeps on: what it has reported.
type source struct {
	fd      int          // not used here
	trouble *atomic.Bool // not used here

	mu      sync.Mutex
	reports bool     // the device reports arrivals
	came    bool     // something came since the device began to look for it
	asleep  []*waker // that sleep on the source
}

// Reports declares that the device calls ReportArrival, so that no one needs to poll it.
func (d *Device) Reports() { d.source.reports = true }

// ReportArrival reports that there may be something to do. Any goroutine may call it, without the
// lock.
func (d *Device) ReportArrival() {
	s := &d.source
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came = true
	for _, w := range s.asleep {
		w.signal()
	}
}

// BeginLook declares that the device now looks for all that has arrived. Its hook Sleep
// accounts for what it leaves.
func (d *Device) BeginLook() {
	s := &d.source
	s.mu.Lock()
	s.came = false
	s.mu.Unlock()
}

func (s *source) readable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.came
}

// enter adds a waker to those that an arrival wakes, unless one has come already.
func (s *source) enter(w *waker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.came {
		return false
	}
	s.asleep = append(s.asleep, w)
	return true
}

func (s *source) leave(w *waker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asleep = slices.DeleteFunc(s.asleep, func(other *waker) bool { return other == w })
}

type waker struct {
	c     chan struct{}
	timer *time.Timer
}

func (w *waker) open() error {
	w.c = make(chan struct{}, 1)
	w.timer = time.NewTimer(time.Hour)
	w.timer.Stop()
	return nil
}

func (w *waker) sleep(s *source, timeout time.Duration) error {
	if s != nil {
		if !s.reports {
			timeout = min(timeout, unwatched)
		}
		if !s.enter(w) {
			return nil
		}
		defer s.leave(w)
	}
	w.timer.Reset(timeout)
	select {
	case <-w.c:
	case <-w.timer.C:
	}
	w.timer.Stop()
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

const notifyFile = 0

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
