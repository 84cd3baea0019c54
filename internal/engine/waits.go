package engine

import "github.com/muster-mpi/muster/internal/p2p"

// waits are the goroutines of a rank that wait: one of them drives, the others sleep.
type waits struct {
	driver    *p2p.Waiter // the goroutine that polls for all waiters, if any
	driven    bool        // driver is not nil, for the C front (direct.go)
	parked    bool        // the driver is parked in the device
	sleepers  *p2p.Waiter // waiters that sleep while another goroutine drives
	probers   int         // sleepers that wait for any message
	free      *p2p.Waiter
	idleLooks int         // polls of look without result in a row
	some      []*p2p.Xfer // for WaitSome
	stats     waitStats
}

// probing is the Pending of a sleeper that waits for any message.
const probing = -1

// any reports whether a goroutine drives or sleeps.
func (s *waits) any() bool { return s.driver != nil || s.sleepers != nil }

func (s *waits) get() *p2p.Waiter {
	w := s.free
	if w == nil {
		return &p2p.Waiter{Ready: make(chan struct{}, 1)}
	}
	s.free, w.Next = w.Next, nil
	return w
}

func (s *waits) put(w *p2p.Waiter) {
	select {
	case <-w.Ready: // drop a late signal
	default:
	}
	w.Pending = 0
	w.Next, s.free = s.free, w
}

// addSleeper adds a waiter to the sleepers. probe reports that any message wakes it up.
func (s *waits) addSleeper(w *p2p.Waiter, probe bool) {
	if probe {
		w.Pending = probing
		s.probers++
	}
	w.Next, s.sleepers = s.sleepers, w
}

func (s *waits) removeSleeper(w *p2p.Waiter, probe bool) {
	for at := &s.sleepers; *at != nil; at = &(*at).Next {
		if *at == w {
			*at = w.Next
			break
		}
	}
	w.Next = nil
	if probe {
		s.probers--
	}
}
