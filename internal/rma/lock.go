package rma

// The lock of a rank's memory in a window (MPI-4.1 section 12.5.3), shared or exclusive. It
// is granted in the order of requests, even if later ones could share it with the holder: an
// exclusive request must not starve.

// Lock is the lock of one rank's memory. The zero Lock is free.
type Lock struct {
	alone   bool // its only holder has it exclusively
	holders int
	queue   []Waiting
}

// Waiting is an origin that waits for the lock, and how to answer it.
type Waiting struct {
	Origin    int32
	Tag       int32 // of the answer
	Exclusive bool
}

// Request requests the lock and reports whether it is granted at once. If not, a later
// Release grants it.
func (l *Lock) Request(w Waiting) bool {
	if len(l.queue) > 0 || !l.free(w.Exclusive) {
		l.queue = append(l.queue, w)
		return false
	}
	l.grant(w)
	return true
}

func (l *Lock) free(exclusive bool) bool {
	return l.holders == 0 || !l.alone && !exclusive
}

func (l *Lock) grant(w Waiting) {
	l.alone = w.Exclusive
	l.holders++
}

// Release releases the lock for one holder, and calls granted for each origin that gets it.
// It returns false if the lock was free.
func (l *Lock) Release(granted func(Waiting)) bool {
	if l.holders == 0 {
		return false
	}
	l.holders--
	served := 0
	for served < len(l.queue) && l.free(l.queue[served].Exclusive) {
		l.grant(l.queue[served])
		granted(l.queue[served])
		served++
	}
	l.queue = append(l.queue[:0], l.queue[served:]...)
	return true
}

// Holders returns the number of holders, and whether the lock is exclusive.
func (l *Lock) Holders() (n int, exclusive bool) { return l.holders, l.holders > 0 && l.alone }
