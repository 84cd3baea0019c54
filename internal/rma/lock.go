package rma

// The lock of a rank's memory in a window (MPI-4.1 section 12.5.3): many may share
// it, or one may have it alone. Who comes first is served first, also if those
// behind could share it with the holder: a writer must not wait for ever.

// Lock is the lock of one rank's memory. The zero Lock is free.
type Lock struct {
	alone   bool // the one holder has it exclusively
	holders int
	queue   []Waiting
}

// Waiting is somebody who waits for the lock, and what is needed to tell it.
type Waiting struct {
	Origin    int32
	Tag       int32 // of the answer
	Exclusive bool
}

// Request asks for the lock and reports whether it is granted at once. If not, a
// Release will name it.
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

// Release gives the lock back, for one holder, and calls granted for those who have
// it now. It is false if nobody had it.
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

// Holders is how many have the lock, and whether it is exclusive.
func (l *Lock) Holders() (n int, exclusive bool) { return l.holders, l.holders > 0 && l.alone }
