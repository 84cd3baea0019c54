//go:build linux

package iwarp

import "github.com/muster-mpi/muster/rdma"

// Long bodies that were posted inline. The caller has his memory back when PostSend
// returns, and most often the socket has taken all of it by then, so no copy is made
// first: keepInline copies only what is left, and lets the pieces that are on their way
// into the socket show the copy. A connection whose socket is full takes no further one, so
// that it keeps one copy at most.

const (
	maxInline   = 32 << 10
	smallInline = 256 // up to this it is copied into the work itself
	strictMax   = 256 // MaxInline in strict mode, as adapters have it
	mostSpare   = 8   // copies whose memory a device keeps
)

// takeInline takes the body of inline work, a copy of it if it is short.
func (w *work) takeInline(body rdma.Mem) (long bool) {
	if body.Len() <= smallInline {
		w.body = rdma.MemOf(w.small[w.head : w.head+copy(w.small[w.head:], body.Bytes())])
		return false
	}
	return true
}

// keepInline copies the body of the latest work, if the socket has not taken all of it.
func (q *queuePair) keepInline() {
	if q.works.count == 0 {
		return
	}
	latest := q.works.first + uint64(q.works.count) - 1
	w := q.works.at(latest)
	if w.done || latest < q.out.freed {
		return
	}
	d := q.dev
	if n := len(d.copies); n > 0 {
		w.kept, d.copies = d.copies[n-1], d.copies[:n-1]
	} else {
		w.kept = make([]byte, maxInline)
	}
	from := w.body.Bytes()
	to := w.kept[:copy(w.kept, from)]
	for i := range q.out.pieces {
		rebase(&q.out.pieces[i], from, to)
	}
	w.body = rdma.MemOf(to)
}

// dropCopy gives the memory of a copy back.
func (d *device) dropCopy(w *work) {
	if len(d.copies) < mostSpare {
		d.copies = append(d.copies, w.kept)
	}
	w.kept = nil
}
