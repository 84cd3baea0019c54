//go:build !muster_portable

package iwarp

import (
	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// Config.Retain: tracks which requests the peer's kernel has acked.

const retains = true

var _ RetainQP = (*queuePair)(nil)

// marks maps positions of the TCP stream to requests.
type marks struct {
	list  []mark
	acked uint64 // requests before this one are acked
}

// mark means that requests before number end at or before a position of the stream.
type mark struct {
	number uint64
	at     int64
}

// mostMarks bounds the list. Beyond it marks are merged, so that acks are noticed later.
const mostMarks = 256

// retained reports whether work waits to be repeated over another path.
func (q *queuePair) retained() bool {
	return q.dev.cfg.Retain && q.state == broken && q.reason == rdma.StatusPeerGone
}

// mark records the end of the requests that the socket has accepted.
func (q *queuePair) mark() {
	m := &q.marks
	next := mark{q.out.sent, q.streamLength()}
	switch n := len(m.list); {
	case n > 0 && m.list[n-1].number == next.number || n == 0 && m.acked == next.number:
	case n == mostMarks:
		m.list[n-1] = next
	default:
		m.list = append(m.list, next)
	}
}

// streamLength returns the length of the stream so far, without the bytes of its setup.
func (q *queuePair) streamLength() int64 {
	if q.secret != nil {
		return int64(q.secret.given)
	}
	return int64(q.out.given)
}

func (q *queuePair) CountAcked() uint64 {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	m := &q.marks
	if !q.fd.none() && len(m.list) > 0 {
		if waiting, err := unix.IoctlGetInt(int(q.fd), unix.SIOCOUTQ); err == nil {
			n, acked := 0, q.streamLength()-int64(waiting)
			for n < len(m.list) && m.list[n].at <= acked {
				m.acked = m.list[n].number
				n++
			}
			m.list = m.list[:copy(m.list, m.list[n:])]
		}
	}
	return min(m.acked, q.works.first)
}

func (q *queuePair) CloseDrained(unfinished func(number uint64)) bool {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	if q.state == closed {
		return true
	}
	if !q.fd.none() && q.state == connected {
		if n, err := unix.IoctlGetInt(int(q.fd), unix.SIOCINQ); q.in.starved || q.in.unread || err == nil && n > 0 {
			return false
		}
	}
	if q.recvCQ.Len() > 0 {
		return false
	}
	for i := range uint64(q.works.count) {
		if number := q.works.first + i; !q.works.at(number).done {
			unfinished(number)
		}
	}
	q.close()
	return true
}
