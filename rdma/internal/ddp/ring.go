package ddp

// ring is a queue of bounded length. Its memory is made when something first comes,
// because most peers of a large job never send anything.
type ring[T any] struct {
	items []T
	head  int32
	n     int32
	limit int32
}

func newRing[T any](limit int) ring[T] { return ring[T]{limit: int32(limit)} }

func (r *ring[T]) full() bool { return r.n == r.limit }

// push makes room at the end and shows it; the ring is not full.
func (r *ring[T]) push() *T {
	if r.items == nil {
		r.items = make([]T, r.limit)
	}
	r.n++
	return r.at(r.n - 1)
}

// at returns the i-th from the front.
func (r *ring[T]) at(i int32) *T {
	if i += r.head; i >= r.limit {
		i -= r.limit
	}
	return &r.items[i]
}

// pop drops the front, and with it what it kept alive.
func (r *ring[T]) pop() {
	var zero T
	*r.at(0) = zero
	r.n--
	if r.head++; r.head == r.limit {
		r.head = 0
	}
}
