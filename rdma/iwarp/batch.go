package iwarp

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Short messages of a burst are sent together: the kernel takes the bytes of each system call
// through the whole stack by themselves.
//
// A burst begins after a Poll, or a pause of burstGap. Its first message is sent at once; then
// messages are held back until they have as many bytes as were sent before. So 1, 1, 2, 4, 8 …
// messages are sent together, up to 64 KB, and a message waits only behind a burst that is at
// least as long. What is held back is framed already, in copied. The next Poll sends it, a
// longer message, or Close.
//
// Only messages that allow it (rdma.More) are held back, and only by a device without a
// thread: its owner polls while the program computes, and Caps.Urgent asks for that.

// batch is the state of a connection that holds messages back.
type batch struct {
	holding bool
	burst   int           // bytes given to the socket since it began
	last    time.Duration // when its last message was posted
}

const (
	mostHeld = 64 << 10
	// longHeld is the longest message that is held back. Framing copies it.
	longHeld = 16 << 10
	// burstGap is longer than the kernel takes for mostHeld bytes.
	burstGap = 100 * time.Microsecond
)

// post records the time of a message. After a pause longer than gap it begins a burst.
func (b *batch) post(now, gap time.Duration) {
	if now-b.last > gap {
		b.burst = 0
	}
	b.last = now
}

// delays reports whether a message whose frame has n bytes is to wait for others.
func (b *batch) delays(n int) bool { return n <= longHeld && (b.holding || n < b.burst) }

// enough reports whether n bytes are enough to be sent together.
func (b *batch) enough(n int) bool { return n >= min(b.burst, mostHeld) }

// hold frames a message that was posted last, if it is to wait for others.
func (q *queuePair) hold(wr *rdma.SendWR) bool {
	o := &q.out
	o.batch.post(time.Since(q.dev.opened), q.dev.gap)
	n := fpduSize(ddp.UntaggedLen + int(wr.HeadLen) + wr.Body.Len())
	if wr.Op != rdma.OpSend || !q.dev.Thread.Disabled || q.state != connected || !o.delays(n) || n > o.segment {
		return false
	}
	if latest := q.works.first + uint64(q.works.count) - 1; o.next != latest || o.blocked || o.mute || o.ready || q.stream.ResponsesPending() {
		return false
	}
	if !o.holding {
		if o.copied == nil {
			o.copied = q.dev.takeBuffer()
		}
		o.clear()
		o.holding = true
		q.dev.holding.Add(1)
	}
	q.dev.combined++
	return q.advance()
}

// enoughHeld reports whether the messages held back are to be sent.
func (q *queuePair) enoughHeld() bool {
	return q.out.enough(len(q.out.copied)) || q.out.next-q.out.sent >= uint64(q.works.depth)/2
}

// release passes what is held back to transmit.
func (q *queuePair) release() {
	o := &q.out
	if !o.holding {
		return
	}
	o.seal()
	o.sent = o.next
	o.holding = false
	q.dev.holding.Add(-1)
}
