package mpi

// Non-blocking calls and their completion (MPI-4.1 section 3.7).

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// Request is a send, receive or collective operation under way. It is a small value
// that may be copied; completing it twice is an error. The zero Request is the null
// request, like MPI_REQUEST_NULL: waiting for it returns at once. Calls on several
// requests set those that they complete to Request{}.
type Request struct {
	c    *Comm
	op   engine.Op
	more *requestMore // rarely needed; four words are returned in registers
}

// requestMore holds the rarely needed fields of a request.
type requestMore struct {
	err     error   // why the operation could not be started
	landing landing // unpacks the received data
	check   *checkedRequest
	record  *arrival    // of a collective that is in the profile of arrivals
	hooked  *hookedCall // the call that started the operation; nil without hooks

	send     *Request   // of Isendrecv: the send; the request itself is the receive
	noStatus bool       // there is no received message to describe
	made     *commStart // of Idup
	file     *fileResult
}

// with returns the request with some of its rarely needed fields set.
func (r Request) with(set func(*requestMore)) Request {
	var more requestMore
	if r.more != nil {
		more = *r.more
	}
	set(&more)
	r.more = &more
	return r
}

// refusedRequest returns the request of a call that could not be started.
func (c *Comm) refusedRequest(err error) Request {
	if err == nil {
		return Request{c: c}
	}
	return Request{c: c, more: &requestMore{err: err}}
}

// refusal returns why the request could not be started, or nil.
func (r Request) refusal() error {
	if r.more == nil {
		return nil
	}
	return r.more.err
}

// endAtOnce completes a request without an operation: it was refused, or complete at once.
func (r Request) endAtOnce() error {
	if r.more == nil {
		return nil
	}
	r.more.record.leave(r.more.err)
	return r.more.err
}

// Isend starts to send buf, which must not be changed until the request is
// complete.
func Isend[T Elem](c *Comm, buf []T, dst, tag int) Request {
	if mayTravel[T](&c.w.types) && uint(dst) < uint(c.size) && uint(tag) <= MaxTag {
		return Request{c: c, op: c.e.Isend(&c.pt, c.world(dst), int32(tag), rawBytes(buf), p2p.Standard)}
	}
	return startSend(c, "Isend", buf, dst, tag, p2p.Standard)
}

// Issend is [Isend] in synchronous mode: the request is complete when the receive
// has started.
func Issend[T Elem](c *Comm, buf []T, dst, tag int) Request {
	return startSend(c, "Issend", buf, dst, tag, p2p.Synchronous)
}

// Irsend is [Isend] in ready mode: the matching receive must have been posted.
func Irsend[T Elem](c *Comm, buf []T, dst, tag int) Request {
	return startSend(c, "Irsend", buf, dst, tag, p2p.Ready)
}

// startSend is isend that hooks see.
func startSend[T Elem](c *Comm, op string, buf []T, dst, tag int, mode p2p.Mode) Request {
	h := c.beginStart(op, CallSend, dst, tag, len(buf)*sizeOf[T]()).sends(rawBytes(buf))
	return h.finishStart(isend(c, op, buf, dst, tag, mode))
}

func isend[T Elem](c *Comm, op string, buf []T, dst, tag int, mode p2p.Mode) Request {
	b, err := bytesOf(&c.w.types, buf)
	if err != nil {
		return c.refusedRequest(c.refuse(ErrType, op, "%w", err))
	}
	return c.trackSend(c.isend(op, outgoingChecked[T](c, op, b), dst, tag, mode), op, dst)
}

func (c *Comm) isend(op string, b []byte, dst, tag int, mode p2p.Mode) Request {
	if uint(dst) >= uint(c.size) || uint(tag) > MaxTag {
		if err := c.checkPeer(op, dst, tag); err != nil || dst == ProcNull {
			return c.refusedRequest(err)
		}
	}
	o := c.e.Isend(&c.pt, c.world(dst), int32(tag), b, mode)
	return Request{c: c, op: o}
}

// Irecv starts to receive into buf, which must not be used until the request is
// complete.
func Irecv[T Elem](c *Comm, buf []T, src, tag int) Request {
	if mayTravel[T](&c.w.types) && uint(src) < uint(c.size) && uint(tag) <= MaxTag {
		return Request{c: c, op: c.e.Irecv(&c.pt, c.world(src), int32(src), int32(tag), rawBytes(buf))}
	}
	h := c.beginStart("Irecv", CallRecv, src, tag, len(buf)*sizeOf[T]())
	return h.finishStart(irecvSlow(c, "Irecv", buf, src, tag))
}

// irecvFor is Irecv as a part of another call.
func irecvFor[T Elem](c *Comm, op string, buf []T, src, tag int) Request {
	if mayTravel[T](&c.w.types) && uint(src) < uint(c.size) && uint(tag) <= MaxTag {
		return Request{c: c, op: c.e.Irecv(&c.pt, c.world(src), int32(src), int32(tag), rawBytes(buf))}
	}
	return irecvSlow(c, op, buf, src, tag)
}

func irecvSlow[T Elem](c *Comm, op string, buf []T, src, tag int) Request {
	b, err := bytesOf(&c.w.types, buf)
	if err != nil {
		return c.refusedRequest(c.refuse(ErrType, op, "%w", err))
	}
	return irecvBytes[T](c, op, b, src, tag)
}

// irecvBytes starts to receive elements of T into the memory b.
func irecvBytes[T Elem](c *Comm, op string, b []byte, src, tag int) Request {
	if c.w.cfg.Check {
		return checkedIrecv(c, noteOf[T](c, op), b, src, func(packed []byte) Request { return c.irecv(op, packed, src, tag) })
	}
	return c.irecv(op, b, src, tag)
}

func (c *Comm) irecv(op string, b []byte, src, tag int) Request {
	from, err := c.source(op, src, tag)
	if err != nil || src == ProcNull {
		return c.refusedRequest(err)
	}
	o := c.e.Irecv(&c.pt, from, int32(src), int32(tag), b)
	return Request{c: c, op: o}
}

// Wait waits until the operation is complete and returns its result.
func (r Request) Wait() (Status, error) { return r.WaitContext(engine.NoContext) }

// WaitContext is [Request.Wait] that also ends, with an error of class ErrPending, when ctx
// does. The operation goes on then and can be waited for again.
func (r Request) WaitContext(ctx context.Context) (Status, error) {
	if r.startCall() != nil {
		return r.hookedWait(ctx)
	}
	return r.wait(ctx)
}

func (r Request) wait(ctx context.Context) (Status, error) {
	if !r.op.Active() {
		return noStatus, r.endAtOnce()
	}
	for r.more.several() && !r.done() { // complete none before ctx can end no more
		if err := waitSome(ctx, []Request{r}, 1); err != nil {
			return Status{}, err
		}
	}
	st, err := r.c.e.Wait(ctx, &r.c.pt, r.waitName(), r.op)
	return r.result(st, err)
}

// waitName is how reports name a wait for the request.
func (r Request) waitName() string {
	if r.more != nil && r.more.check != nil {
		return r.more.check.waitName()
	}
	return "Wait"
}

// WaitOrCancel is [Request.WaitContext] of a receive that is cancelled if ctx ends first: then
// the request is complete, and a message that arrives later goes to the next receive.
func (r Request) WaitOrCancel(ctx context.Context) (Status, error) {
	st, err := r.WaitContext(ctx)
	if !errors.Is(err, engine.ErrGaveUp) || r.more.several() {
		return st, err
	}
	r.Cancel()
	if st, ended := r.Wait(); !st.Cancelled {
		return st, ended // the message was already being transferred
	}
	return Status{}, err
}

// Test reports whether the operation is complete. If it is, Test returns its result
// and the request is completed, as by Wait.
func (r Request) Test() (st Status, done bool, err error) {
	if r.startCall() != nil {
		return r.hookedTest()
	}
	return r.test()
}

func (r Request) test() (st Status, done bool, err error) {
	if !r.op.Active() {
		return noStatus, true, r.endAtOnce()
	}
	if r.more.several() && !r.Done() {
		return Status{}, false, nil
	}
	est, done, err := r.c.e.Test(r.op)
	if !done {
		return Status{}, false, nil
	}
	st, err = r.result(est, err)
	return st, true, err
}

// result completes a request whose operation has been waited for.
func (r Request) result(st engine.Status, err error) (Status, error) {
	if err != nil && (errors.Is(err, engine.ErrGaveUp) || errors.Is(err, engine.ErrShared)) {
		return Status{}, r.c.requestFailure(err, "", 0) // the operation goes on, and so do its other parts
	}
	if r.more != nil && r.more.check != nil {
		st, err = r.more.check.complete(st, err)
	}
	if r.more != nil && r.more.landing != nil && (err == nil || errors.Is(err, p2p.ErrTruncated)) {
		r.c.unpack(r.more.landing, st.Bytes)
	}
	if err != nil {
		err = r.c.requestFailure(err, "", st.Bytes)
	}
	if r.more == nil {
		return Status(st), err
	}
	return r.resultMore(Status(st), err)
}

// resultMore is the part of result for requests with rarely needed fields.
func (r Request) resultMore(st Status, err error) (Status, error) {
	more := r.more
	if err == nil {
		more.record.leave(nil)
	}
	if more.send != nil {
		_, serr := more.send.wait(engine.NoContext)
		err = errors.Join(err, serr)
	}
	if more.made != nil {
		err = errors.Join(err, more.made.err)
	}
	if more.file != nil {
		st, err = Status{Source: AnySource, Tag: AnyTag, Bytes: int(more.file.bytes)}, errors.Join(err, more.file.err)
	}
	if more.noStatus {
		st = noStatus
	}
	return st, err
}

// requestFailure adds the operation to the error of a request. op is the call that
// the operation was part of, if it did not start it itself.
func (c *Comm) requestFailure(err error, op string, bytes int) error {
	if errors.Is(err, engine.ErrStale) || errors.Is(err, engine.ErrShared) {
		return c.refuse(ErrRequest, "Wait", "%w", err)
	}
	var ours *Error
	if errors.As(err, &ours) {
		return err // of check mode
	}
	var part *engine.PartError
	var combining *opError
	var differ *engine.MismatchError
	if errors.As(err, &part) || errors.As(err, &combining) || errors.As(err, &differ) {
		return c.collFailure(err)
	}
	peer, tag := ProcNull, noTag
	name := "Wait"
	var f *engine.Failure
	if errors.As(err, &f) {
		err, peer, tag, name = f.Err, AnySource, f.Tag, "Irecv"
		if f.Peer != engine.Anyone {
			peer = c.peers().indexOf(f.Peer)
		}
		if f.Send {
			name = "Isend"
		}
	}
	if op != "" {
		name, tag = op, noTag
	}
	return c.failure(err, name, peer, tag, bytes)
}

// Done reports whether the operation is complete, without completing the request
// (MPI_Request_get_status).
func (r Request) Done() bool {
	if r.done() {
		return true
	}
	r.c.e.Progress() // a caller that only tests must see it complete eventually
	return r.done()
}

func (r Request) done() bool { return !r.op.Active() || r.c.e.Done(r.pendingOp()) }

// Active reports whether the request has an operation that must be waited for,
// complete or not.
func (r Request) Active() bool { return r.c != nil }

// Cancel tries to cancel a receive that has not matched a message. It returns at
// once. False means that a message has matched. True means that the receive is
// cancelled, unless a large message is already being written into its buffer: then
// the sender decides, when it next calls the library. In both cases the request must
// still be completed; its Status reports whether it was cancelled. Sends cannot be
// cancelled (MPI 4.0 deprecates it): Cancel returns false and the send goes on. The same
// holds for collective operations (MPI-4.1 section 6.12).
func (r Request) Cancel() bool {
	return r.op.Active() && !r.more.ofCollective() && r.c.e.Cancel(r.op)
}

// WaitAll waits for all requests. The error joins all errors. Wait for each request by
// itself if the statuses are needed: the result is the same.
func WaitAll(reqs ...Request) error {
	h := hookMany("WaitAll", CallWait, reqs)
	if h == nil {
		return completeAll(reqs, nil)
	}
	out := make([]Status, len(reqs))
	err := completeAll(reqs, out)
	h.end(reqs, func(i int) Status { return out[i] }, err)
	return err
}

// completeAll completes all requests and stores their statuses in out, unless it is nil.
func completeAll(reqs []Request, out []Status) error {
	var errs []error
	for i := 0; i < len(reqs); {
		r := reqs[i]
		if !r.op.Active() && r.more == nil { // a short send, complete at once
			if out != nil {
				out[i] = noStatus
			}
			reqs[i] = Request{}
			i++
			continue
		}
		if !r.op.Active() {
			errs = finish(reqs, out, i, noStatus, r.endAtOnce(), errs)
			i++
			continue
		}
		// All requests of a rank are waited for under one lock.
		e := r.c.e
		h := e.Hold()
		for ; i < len(reqs) && reqs[i].op.Active() && reqs[i].c.e == e; i++ {
			r := reqs[i]
			if r.more.several() {
				h.Release()
				st, err := r.wait(engine.NoContext)
				errs = finish(reqs, out, i, st, err, errs)
				h = e.Hold()
				continue
			}
			st, err := h.Wait(&r.c.pt, "Wait", r.op)
			if err != nil || r.more != nil {
				h.Release()
				done, err := r.result(st, err)
				errs = finish(reqs, out, i, done, err, errs)
				h = e.Hold()
				continue
			}
			if out != nil {
				out[i] = Status(st)
			}
			reqs[i] = Request{}
		}
		h.Release()
	}
	return errors.Join(errs...)
}

// finish records the result of one of several requests.
func finish(reqs []Request, out []Status, i int, st Status, err error, errs []error) []error {
	reqs[i].startCall().noteArrival()
	reqs[i] = Request{}
	if out != nil {
		out[i] = st
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("request %d: %w", i, err))
	}
	return errs
}

// waitSome waits until need of the requests are complete, and completes none. Of a request
// with several operations it awaits one that is not complete.
func waitSome(ctx context.Context, reqs []Request, need int) error {
	var c *Comm
	name := "Wait"
	if len(reqs) == 1 {
		name = reqs[0].waitName()
	}
	ops := make([]engine.Op, len(reqs))
	for i, r := range reqs {
		ops[i] = r.pendingOp()
		if r.op.Active() {
			c = r.c
		}
	}
	if c == nil {
		return nil
	}
	if i := slices.IndexFunc(reqs, func(r Request) bool { return r.op.Active() && r.c.e != c.e }); i >= 0 {
		return c.waitSomeOfJobs(ctx, reqs, need)
	}
	if err := c.e.WaitSome(ctx, &c.pt, name, ops, need); err != nil {
		return c.refuse(c.classOf(err), "Wait", "%w", err)
	}
	return nil
}
