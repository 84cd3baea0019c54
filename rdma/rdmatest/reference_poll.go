package rdmatest

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Completions: Poll does the work that is due, receives messages from the inboxes and
// returns completions; Wait blocks on a token, which is set whenever something becomes
// ready.

type refCQ struct {
	dev    *refDevice
	ready  []refEntry
	lent   [2][][]byte   // returned by the last Poll of the application, and beside it
	side   int           // 1: Poll is called beside the application
	token  chan struct{} // capacity one: a signal is never lost and never accumulates
	closed bool

	// For WaitArmed, see reference_notify.go.
	armed  rdma.Notify
	beside chan struct{}
}

type refEntry struct {
	c    rdma.Completion
	from *refQP // the origin of the request; nil for a receive
	lent []byte // the message, if it is lent
}

// poisoned overwrites a lent message when its lending ends.
const poisoned = 0xDB

func (c *refCQ) Poll(out []rdma.Completion) int {
	c.dev.fab.mu.Lock()
	defer c.dev.fab.mu.Unlock()
	c.endLending()
	if c.closed {
		return 0
	}
	c.dev.progress()
	for _, q := range c.dev.qps {
		for q.recvCQ == c && len(c.ready) < len(out) && q.receivable() {
			c.receive(q)
		}
	}
	n := min(len(out), len(c.ready))
	for i, entry := range c.ready[:n] {
		out[i] = entry.c
		if entry.from != nil && entry.c.Op == rdma.OpPush {
			entry.from.pushes--
		} else if entry.from != nil {
			entry.from.outstanding--
		}
		if entry.lent != nil {
			c.lent[c.side] = append(c.lent[c.side], entry.lent)
		}
	}
	c.ready = append(c.ready[:0:0], c.ready[n:]...)
	return n
}

// endLending overwrites lent messages, so that a late access is noticed.
func (c *refCQ) endLending() {
	for side := c.side; side < len(c.lent); side++ {
		for _, data := range c.lent[side] {
			paint(data, poisoned)
		}
		c.lent[side] = nil
	}
}

// progress carries out peers' accesses if they need this CPU, and copies one piece of
// every cooperative copy.
func (d *refDevice) progress() {
	pendingAccesses := d.pendingAccesses
	d.pendingAccesses = nil
	for _, chore := range pendingAccesses {
		chore()
	}
	for _, cp := range append([]*refCopy(nil), d.copies...) {
		cp.advance(d)
	}
}

// receivable reports whether both a message and a buffer for it are available.
func (q *refQP) receivable() bool {
	if len(q.inbox) == 0 {
		return false
	}
	s := q.receives()
	return s.cfg.Lend || len(s.buffers) > 0
}

// receive completes the oldest message of q.
func (c *refCQ) receive(q *refQP) {
	m := q.inbox[0]
	q.inbox = q.inbox[1:]
	m.from.sendCQ.signal() // there is room again
	done := rdma.Completion{Op: rdma.OpRecv, Peer: c.dev.handle(m.from)}
	s := q.receives()
	if s.cfg.Lend {
		done.Data, done.Len = rdma.MemOf(m.data), uint64(len(m.data))
		c.ready = append(c.ready, refEntry{c: done, lent: m.data})
		return
	}
	buffer := s.buffers[0]
	s.buffers = s.buffers[1:]
	done.ID = buffer.ID
	if len(m.data) > buffer.Body.Len() {
		done.Status = rdma.StatusTooLong
	} else {
		n := copy(buffer.Body.Bytes(), m.data)
		done.Data, done.Len = buffer.Body.Slice(0, n), uint64(n)
	}
	c.ready = append(c.ready, refEntry{c: done})
	if s.armed && len(s.buffers) < s.cfg.LowWater {
		s.armed = false
		c.ready = append(c.ready, refEntry{c: rdma.Completion{Op: rdma.OpLowWater}})
	}
}

func (c *refCQ) Wait(timeout time.Duration) error {
	if closed, busy := c.state(); closed {
		return rdma.ErrClosed
	} else if busy {
		return nil
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-c.token:
	case <-timer.C:
	}
	return nil
}

// state reports whether a Poll would have something to do.
func (c *refCQ) state() (closed, busy bool) {
	c.dev.fab.mu.Lock()
	defer c.dev.fab.mu.Unlock()
	return c.stateHeld()
}

// stateHeld is state for callers that hold the lock.
func (c *refCQ) stateHeld() (closed, busy bool) {
	busy = len(c.ready) > 0 || len(c.dev.pendingAccesses) > 0
	for _, q := range c.dev.qps {
		busy = busy || q.recvCQ == c && q.receivable()
	}
	for _, cp := range c.dev.copies {
		busy = busy || cp.movable(c.dev)
	}
	return c.closed, busy
}

func (c *refCQ) Wake() {
	c.wakePoller()
	c.callBeside()
}

func (c *refCQ) signal() {
	c.wakePoller()
	c.wakeArmed(rdma.NotifyAny)
}

func (c *refCQ) wakePoller() {
	select {
	case c.token <- struct{}{}:
	default:
	}
}

// signal wakes every queue of the device.
func (d *refDevice) signal() {
	for _, c := range d.cqs {
		c.signal()
	}
}

func (c *refCQ) Close() error {
	c.dev.fab.mu.Lock()
	defer c.dev.fab.mu.Unlock()
	c.closed = true
	c.signal()
	return nil
}
