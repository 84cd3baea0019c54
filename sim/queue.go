package sim

import "math/bits"

// event is something that happens at a time, in picoseconds.
type event struct {
	t        int64
	src, dst int32
	op       int32 // an operation of src, or of dst for those that return to the sender
	bytes    int32
	step     uint16
	kind     uint8
	rail     uint8
}

const (
	evStart  uint8 = iota // dst enters a call
	evHand                // a message is at dst
	evData                // the data of a long message is at dst
	evAsk                 // a long message is announced at dst
	evPull                // dst is asked for the data of its send
	evSent                // the send of dst is over
	evInject              // a message is at the adapter of src
	evArrive              // its last byte is at the adapter of dst, if that is free
	evFree                // dst gives up its core
)

// queue is a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990): time never goes back, so a
// push is an append, and an event moves at most 63 times, usually twice.
type queue struct {
	last    int64
	n, most int
	buckets [65][]event
	at      int // index of the next event of buckets[0]
}

func (q *queue) push(e event) {
	i := bits.Len64(uint64(e.t ^ q.last))
	q.buckets[i] = append(q.buckets[i], e)
	if q.n++; q.n > q.most {
		q.most = q.n
	}
}

// pop returns the earliest event. Of several at one time, those that were pushed first
// come first, so that results are reproducible.
func (q *queue) pop() event {
	if q.at == len(q.buckets[0]) {
		q.refill()
	}
	e := q.buckets[0][q.at]
	q.at++
	q.n--
	return e
}

// refill distributes the first bucket with events among those below it.
func (q *queue) refill() {
	q.buckets[0], q.at = q.buckets[0][:0], 0
	i := 1
	for len(q.buckets[i]) == 0 {
		i++
	}
	list := q.buckets[i]
	q.last = list[0].t
	for k := range list {
		q.last = min(q.last, list[k].t)
	}
	for k := range list {
		j := bits.Len64(uint64(list[k].t ^ q.last))
		q.buckets[j] = append(q.buckets[j], list[k])
	}
	if q.buckets[i] = list[:0]; cap(list) > keptEvents {
		q.buckets[i] = nil
	}
}

const (
	eventSize = 32
	// keptEvents is the largest capacity of an empty bucket: events of a million ranks
	// pass through a few buckets, and each would keep memory for all.
	keptEvents = 1 << 14
)
