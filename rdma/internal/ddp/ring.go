package ddp

// ring is a queue of bounded length. Its memory is allocated on first use, because most
// peers of a large job never send anything.
type ring[T any] struct {
	items []T
	head  int32
	n     int32
	limit int32
}

func newRing[T any](limit int) ring[T] { return ring[T]{limit: int32(limit)} }

func (r *ring[T]) full() bool { return r.n == r.limit }

// push appends an entry and returns it; the ring must not be full.
func (r *ring[T]) push() *T {
	if r.items == nil {
		r.items = make([]T, r.limit)
	}
	r.n++
	return r.at(r.n - 1)
}

// at returns the i-th entry from the front.
func (r *ring[T]) at(i int32) *T {
	if i += r.head; i >= r.limit {
		i -= r.limit
	}
	return &r.items[i]
}

// pop removes the front entry and releases its memory.
func (r *ring[T]) pop() {
	var zero T
	*r.at(0) = zero
	r.n--
	if r.head++; r.head == r.limit {
		r.head = 0
	}
}
