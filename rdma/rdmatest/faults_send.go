package rdmatest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// faultyQP holds messages until they are due.
type faultyQP struct {
	rdma.QP
	f       *Faulty
	kind    rdma.Transport
	sendCQ  *faultyCQ
	random  generator
	held    []*heldMessage
	lastDue map[rdma.PeerID]int // by peer, to keep its messages in order
	closed  bool
}

// maxHeld bounds the messages that a queue pair holds; PostSend returns ErrAgain for more.
const maxHeld = 256

// faultyWork is a user's request, posted to the device under another ID.
type faultyWork struct {
	q        *faultyQP
	id       uint64 // the user's
	op       rdma.Op
	peer     rdma.PeerID
	silent   bool // sent inline: success generates no completion
	copies   int  // completions still expected from the device
	reported bool // the user has received the completion
}

func (w *faultyWork) completion(status rdma.Status, n uint64) rdma.Completion {
	return rdma.Completion{ID: w.id, Op: w.op, Peer: w.peer, Status: status, Len: n}
}

// fail completes the request with a failure, unless it was reported before.
func (w *faultyWork) fail(status rdma.Status) {
	if !w.reported {
		w.reported = true
		w.q.report(w.completion(status, 0))
	}
}

type heldMessage struct {
	wr   rdma.SendWR
	work *faultyWork
	due  int // the step
	left int // copies still to be posted
}

func (q *faultyQP) PostSend(wrs []rdma.SendWR) (int, error) {
	q.f.learn()
	defer q.f.deliverDue()
	for i := range wrs {
		if err := q.take(&wrs[i]); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

// named reports whether requests name their peer: an RC queue pair has only one.
func (q *faultyQP) named() bool { return q.kind != rdma.RC }

func (q *faultyQP) take(wr *rdma.SendWR) error {
	if q.closed || q.f.closed {
		return fmt.Errorf("post %v on %s: %w", wr.Op, q.Addr(), rdma.ErrClosed)
	}
	attr := q.f.Attr()
	if wr.Op == rdma.OpWriteRecord {
		return fmt.Errorf("post %v on %s: %w", wr.Op, q.Addr(), rdma.ErrUnsupported)
	}
	inline := wr.Flags&rdma.Inline != 0
	w := &faultyWork{q: q, id: wr.ID, op: wr.Op, peer: wr.Peer, silent: inline, copies: 1}
	if q.named() && q.f.gone(wr.Peer) {
		w.fail(rdma.StatusPeerGone)
		return nil
	}
	tooLong := int(wr.HeadLen)+wr.Body.Len() > attr.MaxSend || inline && wr.Body.Len() > attr.MaxInline
	if wr.Op != rdma.OpSend || tooLong {
		return q.hand(*wr, w) // passed through unchanged, or rejected by the device
	}
	if len(q.held) >= maxHeld {
		return rdma.ErrAgain
	}
	q.hold(wr, w)
	return nil
}

// hold decides the faults of a message.
func (q *faultyQP) hold(wr *rdma.SendWR, w *faultyWork) {
	f := q.f
	f.step++
	f.tally.Messages++
	drop, twice, late := q.draw(f.faults.Drop), q.draw(f.faults.Duplicate), q.draw(f.faults.Reorder)
	behind := 1 + q.random.intBelow(3)
	delay := q.random.intBelow(f.faults.Delay + 1)
	h := &heldMessage{wr: *wr, work: w, due: f.step + delay, left: 1}
	if delay > 0 {
		f.tally.Delayed++
	}
	if q.kind == rdma.UD {
		if drop {
			f.tally.Dropped++
			if !w.silent {
				q.report(w.completion(rdma.StatusOK, uint64(wr.HeadLen)+uint64(wr.Body.Len())))
			}
			return
		}
		if twice {
			f.tally.Duplicated++
			h.left, w.copies = 2, 2
		}
		if late {
			f.tally.Reordered++
			h.due += behind
		}
	} else {
		h.due = max(h.due, q.lastDue[wr.Peer])
		q.lastDue[wr.Peer] = h.due
	}
	if w.silent {
		h.wr.Body = rdma.MemOf(slices.Clone(wr.Body.Bytes()))
		if !f.Device.Attr().LocalKeys {
			h.wr.Flags &^= rdma.Inline // so that it completes, and the request can be forgotten
		}
	}
	q.held = append(q.held, h)
}

// draw returns true with the given probability. It always draws, because the number of
// draws for a message must not depend on the faults.
func (q *faultyQP) draw(p float64) bool { return float64(q.random.next()>>11)/(1<<53) < p }

// hand posts a request to the device under a new ID.
func (q *faultyQP) hand(wr rdma.SendWR, w *faultyWork) error {
	q.f.lastID++
	wr.ID = q.f.lastID
	if _, err := q.QP.PostSend([]rdma.SendWR{wr}); err != nil {
		return err
	}
	q.f.works[wr.ID] = w
	return nil
}

// deliverDue posts the messages that are due.
func (f *Faulty) deliverDue() {
	for _, q := range f.qps {
		q.deliverDue(f.step)
	}
	f.failPeers()
}

func (q *faultyQP) deliverDue(step int) {
	full := false
	q.held = slices.DeleteFunc(q.held, func(h *heldMessage) bool {
		for !full && h.due <= step && h.left > 0 && !(q.named() && q.f.gone(h.wr.Peer)) {
			if err := q.hand(h.wr, h.work); errors.Is(err, rdma.ErrAgain) {
				full = true // later messages must not overtake it
			} else if err != nil {
				h.left = 0
				h.work.fail(rdma.StatusFault)
			} else if h.left--; h.left == 0 && q.named() {
				q.f.countMessage(h.wr.Peer)
			}
		}
		return h.left == 0
	})
}

// report adds a completion that the device does not generate.
func (q *faultyQP) report(c rdma.Completion) {
	q.sendCQ.ready = append(q.sendCQ.ready, c)
	q.sendCQ.Wake()
}

// flush posts the held messages and completes the rest as flushed.
func (q *faultyQP) flush() {
	if q.closed {
		return
	}
	q.deliverDue(int(^uint(0) >> 1))
	for _, h := range q.held {
		h.work.copies -= h.left
		if h.work.copies == 0 && !h.work.silent {
			h.work.fail(rdma.StatusFlushed)
		}
	}
	q.held = nil
}

func (q *faultyQP) Close() error {
	q.flush()
	q.closed = true
	return q.QP.Close()
}
