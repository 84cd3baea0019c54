package mpi

// Waits and tests as hooks see them. With hooks, every request of the program carries the
// call that has started it (hookedCall.finishStart).

import (
	"context"
	"errors"

	"github.com/muster-mpi/muster/internal/engine"
)

// startCall returns the call that has started the request, or nil if no hook has seen it.
func (r Request) startCall() *hookedCall {
	if r.more == nil {
		return nil
	}
	return r.more.hooked
}

// hookedWait is Wait for a request with hooks.
func (r Request) hookedWait(ctx context.Context) (Status, error) {
	h := r.c.begin("Wait", CallWait, ProcNull, AnyTag, 0)
	st, err := r.wait(ctx)
	if r.op.Active() && !errors.Is(err, engine.ErrGaveUp) && !errors.Is(err, engine.ErrShared) {
		r.more.hooked.complete(h, st, err)
	}
	h.end(st, err)
	return st, err
}

// hookedTest is Test for a request with hooks.
func (r Request) hookedTest() (Status, bool, error) {
	h := r.c.begin("Test", CallTest, ProcNull, AnyTag, 0)
	st, done, err := r.test()
	if done && r.op.Active() {
		r.more.hooked.complete(h, st, err)
	}
	h.end(st, err)
	return st, done, err
}

// manyHooked is a call on several requests, at least one of which hooks have seen.
type manyHooked hookedCall

// hookMany reports the begin of a call on several requests. It returns nil without hooks.
func hookMany(name string, kind CallKind, reqs []Request) *manyHooked {
	for i := range reqs {
		if reqs[i].c == nil {
			continue
		}
		if reqs[i].startCall() == nil {
			return nil
		}
		h := reqs[i].c.begin(name, kind, ProcNull, AnyTag, 0)
		h.before = append(h.before[:0], reqs...)
		return (*manyHooked)(h)
	}
	return nil
}

// end reports the requests that the call has completed and so set to null, and its end.
// status returns the status of a request.
func (m *manyHooked) end(reqs []Request, status func(i int) Status, err error) {
	for i, r := range m.before {
		if r.op.Active() && reqs[i].c == nil && r.startCall() != nil {
			r.more.hooked.complete((*hookedCall)(m), status(i), err)
		}
	}
	clear(m.before) // else the buffers would be kept in memory
	(*hookedCall)(m).report(noStatus, err)
}

// endSome is end for calls that return a list.
func (m *manyHooked) endSome(reqs []Request, done []Completed, err error) {
	m.end(reqs, func(i int) Status {
		for _, d := range done {
			if d.Index == i {
				return d.Status
			}
		}
		return noStatus
	}, err)
}
