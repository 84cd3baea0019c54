package mpi

// The shared file pointer (MPI-4.1 section 14.4.4): a number in the memory of rank 0, which the
// others advance by an atomic addition.

import "sync"

// sharedPointer is the shared pointers of a file. Each view has its own, which begins at 0, so that opening
// a view needs no synchronization. Those of the last sharedPointers views exist.
type sharedPointer struct {
	mu     sync.Mutex
	win    *Win[int64]
	locked bool // by this rank, in its first access
}

const sharedPointers = 64

func (s *sharedPointer) open(c *Comm) error {
	n := 0
	if c.rank == 0 {
		n = sharedPointers
	}
	w := &Win[int64]{}
	if err := w.create(c, allocated, nil, n); err != nil {
		return err
	}
	w.hooked = false // its accesses are part of the calls of the file
	s.win = w
	return nil
}

// prepare sets the pointer to 0 that a view will have which is opened much later.
func (s *sharedPointer) prepare(view int) error {
	if s.win.c.rank != 0 || view < sharedPointers/2 {
		return nil
	}
	_, err := s.update(view+sharedPointers/2, 0, Replace)
	return err
}

// update combines a number with the pointer of a view, and returns its old value.
func (s *sharedPointer) update(view int, by int64, op func() Op[int64]) (old int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.locked {
		if err := s.win.lockTarget(0, LockShared); err != nil {
			return 0, err
		}
		s.locked = true
	}
	if err := s.win.accumulate("FetchAndOp", []int64{by}, sliceOf(&old), 0, view%sharedPointers, op(), nil); err != nil {
		return 0, err
	}
	return old, s.win.flush("Flush", 0, false)
}

// close is collective.
func (s *sharedPointer) close() error {
	if s.locked {
		if err := s.win.unlockTarget(0); err != nil {
			return err
		}
	}
	return s.win.free()
}
