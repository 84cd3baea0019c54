package iwarp

import "github.com/muster-mpi/muster/rdma"

// Long bodies that were posted inline. The caller may reuse the memory when PostSend
// returns. Usually the socket has accepted all of it by then, so no copy is made first:
// keepInline copies only the rest, and redirects the pieces that still wait for the socket
// to the copy. A connection whose socket is full accepts no further inline body, so that
// it keeps one copy at most.

const (
	maxInline   = 32 << 10
	smallInline = 256      // up to this length it is copied into the work itself
	strictMax   = 16 << 10 // MaxInline in strict mode: a library keeps registered buffers for copies of that length
	mostSpare   = 8        // spare copy buffers per device
)

// takeInline takes the body of inline work, and copies it if it is short.
func (w *work) takeInline(body rdma.Mem) (long bool) {
	if body.Len() <= smallInline {
		w.body = rdma.MemOf(w.small[w.head : w.head+copy(w.small[w.head:], body.Bytes())])
		return false
	}
	return true
}

// keepInline copies the body of the latest work, if the socket has not accepted all of it.
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

// dropCopy releases the memory of a copy.
func (d *device) dropCopy(w *work) {
	if len(d.copies) < mostSpare {
		d.copies = append(d.copies, w.kept)
	}
	w.kept = nil
}
