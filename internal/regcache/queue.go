package regcache

// The order of eviction: least recently used, by second chance. A use does not reorder a
// region, it only stamps it: reordering would touch two neighbors, in a large cache two
// more misses of the processor's cache on every hit. A region at the end of the queue that
// was used since it was queued returns to the front.

type queue struct {
	first, last *region
	n           int
}

func (q *queue) push(r *region) {
	r.prev, r.next = nil, q.first
	if q.first != nil {
		q.first.prev = r
	} else {
		q.last = r
	}
	q.first = r
	q.n++
}

func (q *queue) remove(r *region) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		q.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		q.last = r.prev
	}
	r.prev, r.next = nil, nil
	q.n--
}
