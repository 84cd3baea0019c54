package mpi

// How much of an operation is hidden behind computation. Config.Profile divides the time from
// the return of the call that starts an operation to its completion into what the rank did
// meanwhile:
//
//	computed   no goroutine of the rank was in a call
//	waited     one was in a wait or test, of this request or of another: a loop of Wait is
//	           counted as WaitAll
//	the rest   in other calls
//
// The engine reports when an operation completes, also if the progress thread completes it
// while the rank computes. A report takes the lock of the engine twice and reads the clock, so
// only collectives and operations of more than shortSend bytes are measured.

import "github.com/muster-mpi/muster/prof"

// appTime sums up what a rank does, by times in ns. callProfile.mu guards it.
type appTime struct {
	inCalls, inWaits int // goroutines
	now              moment
}

// moment is a time, and what a rank has done until then.
type moment struct{ at, computed, waited int64 }

// advance adds the time until now. Goroutines read the clock before they come here, so it may
// be earlier than that of another.
func (t *appTime) advance(now int64) {
	d := now - t.now.at
	if d <= 0 {
		return
	}
	t.now.at = now
	switch {
	case t.inCalls == 0:
		t.now.computed += d
	case t.inWaits > 0:
		t.now.waited += d
	}
}

func (t *appTime) enter(now int64, kind CallKind) { t.change(now, kind, 1) }
func (t *appTime) leave(now int64, kind CallKind) { t.change(now, kind, -1) }

func (t *appTime) change(now int64, kind CallKind, by int) {
	t.advance(now)
	t.inCalls += by
	if kind == CallWait || kind == CallTest {
		t.inWaits += by
	}
}

// moment returns the time of the last change.
func (t *appTime) moment() moment { return t.now }

// overlap returns what a rank did between the start and the end of an operation, which it
// began to complete at the time asked.
func overlap(start, end moment, asked int64) prof.Overlap {
	if end.at < start.at {
		end = start
	}
	o := prof.Overlap{Operations: 1, Time: uint64(end.at - start.at), Hidden: uint64(end.computed - start.computed), Waited: uint64(end.waited - start.waited)}
	if end.at <= asked {
		o.Early, o.HiddenEarly = 1, o.Hidden
	}
	return o
}

// measured reports whether the end of the operation is watched.
func (c *timedCall) measured() bool {
	return c.kind == CallCollective || c.kind != CallCreate && c.bytes > shortSend
}

// counts reports whether an operation with this status is part of the statistics: one that was
// under way when its call returned.
func (c *timedCall) counts(st Status) bool {
	short := (c.kind == CallRecv || c.kind == CallMrecv) && st.Bytes <= shortSend
	return c.over.at != 0 && !short && !st.Cancelled
}

// watchEnd makes the engine report the end of the request's operations, the last of which
// counts.
func (h *hookedCall) watchEnd(r Request) {
	if h.w.watch.calls == nil || !h.timed.measured() {
		return
	}
	r.c.e.WatchEnd(r.op, h)
	if r.more != nil && r.more.send != nil {
		r.c.e.WatchEnd(r.more.send.op, h)
	}
}

// OperationEnded implements p2p.EndWatcher. The caller holds the lock of the engine.
func (h *hookedCall) OperationEnded() {
	p := h.w.watch.calls
	p.mu.Lock()
	defer p.mu.Unlock()
	p.app.advance(p.now())
	h.timed.over = p.app.moment()
}
