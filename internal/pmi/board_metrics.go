package pmi

// The counters of ranks on the board, after all rows. A rank writes them only if the
// launcher asks for it, so their pages take no memory in other jobs.

import "sync/atomic"

// Metrics are counters of a rank since it joined the job.
type Metrics struct {
	MessagesSent, MessagesReceived uint64
	BytesSent, BytesReceived       uint64 // of messages
	Waiting                        uint64 // nanoseconds in calls that waited
	Retransmitted                  uint64 // datagrams and TCP segments
	Memory                         uint64 // bytes of communication memory, now
}

const (
	metricWords = 8 // a cache line: how often they were written, and the counters
	wordWritten = 0
)

// Values returns pointers to all counters, in a fixed order.
func (m *Metrics) Values() [metricWords - 1]*uint64 {
	return [...]*uint64{&m.MessagesSent, &m.MessagesReceived, &m.BytesSent, &m.BytesReceived, &m.Waiting, &m.Retransmitted, &m.Memory}
}

func (b *Board) metrics(rank int) []uint64 {
	if b == nil || uint(rank) >= uint(b.size) {
		return nil
	}
	at := headerWords + b.size*rowWords + rank*metricWords
	return b.words[at : at+metricWords : at+metricWords]
}

// SetMetrics records the counters of a rank. Calls for one rank must not run concurrently.
func (b *Board) SetMetrics(rank int, m Metrics) {
	words := b.metrics(rank)
	if words == nil {
		return
	}
	for i, v := range m.Values() {
		atomic.StoreUint64(&words[1+i], *v)
	}
	atomic.AddUint64(&words[wordWritten], 1)
}

// Metrics returns the counters of a rank, and whether the rank has recorded any. A
// counter may be older than the one next to it.
func (b *Board) Metrics(rank int) (m Metrics, ok bool) {
	words := b.metrics(rank)
	if words == nil || atomic.LoadUint64(&words[wordWritten]) == 0 {
		return m, false
	}
	for i, v := range m.Values() {
		*v = atomic.LoadUint64(&words[1+i])
	}
	return m, true
}
