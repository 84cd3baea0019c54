package engine

// One-sided communication where memory is not simply mapped: by the device, which
// writes and reads a peer's memory alone, or by request, which the peer's progress
// serves. With the lock held:
//
//	Put, Get      a Write or Read of the device (p2p/move.go); without one, requests
//	Accumulate …  requests: a message, served by rma.Target, perhaps an answer
//	serve         a request has come: whoever polls serves it and sends the answers
//	Flush         waits for what is under way, and asks for an answer behind what had none
//
// Requests are ordinary messages in a context of the window, received from anybody
// by one receive that is always posted: order, credit and long messages are those of
// all messages. They are marked as solicited, and while a window is open the rank's
// deputy is on duty, so that they are served while the application computes.

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/rma"
	"github.com/muster-mpi/muster/rdma"
)

// Tags in the context of a window. Answers have those from firstAnswer on.
const (
	requestTag  = 0
	firstAnswer = 16
	lastAnswer  = 1<<31 - 1
)

// Window is a rank's part in a window.
type Window struct {
	e       *Engine
	comm    Comm
	target  *rma.Target
	peers   []windowPeer
	waiter  p2p.Waiter // the owner of all its messages and moves
	inbox   []byte
	serving *p2p.Xfer
	closed  bool
	tag     int32
	parts   []windowPart
	free    []int32 // places in parts
	pending int     // moves and answers under way, of all peers
	mrs     []rdma.MR
	stats   WindowStats
}

// WindowStats counts what a window did.
type WindowStats struct {
	Transfers uint64 // Writes and Reads of the device
	Requests  uint64 // sent
	Served    uint64
}

// windowPeer is what is known of a rank's memory, and what is under way there.
type windowPeer struct {
	world  int
	link   *p2p.Link
	memory WindowMemory
	// pending counts moves and answers that have not ended.
	pending int
	// unconfirmed says that requests without an answer were sent since the last Flush.
	unconfirmed bool
	err         error // the first thing that went wrong since the last Flush
}

// WindowMemory is where a rank's memory is for others: the address and the key with the
// device of its host, and with that of the network; keys are 0 where there is none.
type WindowMemory struct {
	Near, Far rdma.MR
}

// windowPart is an operation under way.
type windowPart struct {
	rank   int
	memory []byte // of the message, borrowed
	answer []byte // where the bytes of an answer go
	counts bool   // it is among pending
	batch  *Batch
}

// Batch is a call that can be waited for on its own (MPI-4.1 section 12.3.6).
type Batch struct {
	x    *p2p.Xfer
	left int
	err  error
}

// The Part of the receive that requests come by.
const servingPart = -1

// OpenWindow makes a rank's part in a window. comm is for its messages alone; ranks
// are those of the world, nil if they are equal. memory, if not empty, is what
// others may reach by the device. All ranks do this before anybody uses the window.
func (e *Engine) OpenWindow(comm Comm, ranks []int32, size int, target *rma.Target, memory []byte) (*Window, WindowMemory, error) {
	w := &Window{e: e, comm: comm, target: target, peers: make([]windowPeer, size), tag: firstAnswer,
		inbox: make([]byte, rma.RequestMax)}
	w.waiter.Whole = w
	for r := range w.peers {
		if w.peers[r].world = r; ranks != nil {
			w.peers[r].world = int(ranks[r])
		}
	}
	e.lock()
	defer e.unlock()
	var exposed WindowMemory
	if e.failed != nil {
		return nil, exposed, e.failed
	}
	for _, d := range e.lanes {
		if len(memory) == 0 || !d.attr.Ops.Has(rdma.OpWrite) && !d.attr.Ops.Has(rdma.OpRead) {
			continue
		}
		mr, err := d.dev.Register(memory, rdma.RemoteRead|rdma.RemoteWrite)
		if err != nil {
			w.deregister()
			return nil, exposed, fmt.Errorf("register %d bytes with %s: %w", len(memory), d.attr.Name, err)
		}
		for len(w.mrs) < d.number {
			w.mrs = append(w.mrs, rdma.MR{})
		}
		w.mrs = append(w.mrs, mr)
		if d.local {
			exposed.Near = mr
		} else {
			exposed.Far = mr
		}
	}
	w.postRecv()
	e.settle()
	e.countWindow(1)
	return w, exposed, nil
}

// SetMemory reports where the memory of a rank is.
func (w *Window) SetMemory(rank int, p WindowMemory) { w.peers[rank].memory = p }

// countWindow counts the windows that need somebody to serve requests.
func (e *Engine) countWindow(n int) {
	if e.thread == nil {
		e.startThread()
	}
	e.thread.windows += n
	e.resumeThread()
}

// Close ends the rank's part. Nothing is under way, and all ranks know it.
func (w *Window) Close() error {
	e := w.e
	e.lock()
	defer e.unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if w.serving != nil {
		e.m.Cancel(w.serving)
		e.settle()
	}
	e.countWindow(-1)
	return w.deregister()
}

func (w *Window) deregister() (err error) {
	for i, mr := range w.mrs {
		if mr.RKey == 0 || w.e.closed {
			continue
		}
		if derr := w.e.lanes[i].dev.Deregister(mr); derr != nil && err == nil {
			err = fmt.Errorf("deregister the memory of a window with %s: %w", w.e.lanes[i].attr.Name, derr)
		}
	}
	w.mrs = nil
	return err
}

// Stats is what the window has done.
func (w *Window) Stats() WindowStats {
	w.e.lock()
	defer w.e.unlock()
	return w.stats
}

func (w *Window) link(rank int) *p2p.Link {
	p := &w.peers[rank]
	if p.link == nil {
		p.link = w.e.link(p.world)
	}
	return p.link
}

// reach is the key of a rank's memory for the device that leads there; ok is false
// if that device cannot do op, or the memory is not known to it.
func (w *Window) reach(rank int, op rdma.Op) (mr rdma.MR, ok bool) {
	l := w.link(rank)
	d := w.e.lanes[l.Dev]
	mr = w.peers[rank].memory.Far
	if d.local {
		mr = w.peers[rank].memory.Near
	}
	return mr, mr.RKey != 0 && d.attr.Ops.Has(op)
}

// Put writes b into a rank's memory. Region 0 is the window's own. b is in use until
// a Flush, or until the batch, if there is one, has ended.
func (w *Window) Put(rank int, region, offset uint64, b []byte, batch *Batch) {
	w.e.lock()
	defer w.e.unlock()
	if mr, ok := w.reach(rank, rdma.OpWrite); ok && region == 0 {
		w.transfer(rank, rdma.OpWrite, mr, offset, b, batch)
		return
	}
	for at := 0; at < len(b); at += rma.MaxPiece {
		piece := b[at:min(at+rma.MaxPiece, len(b))]
		w.request(rank, rma.Request{Kind: rma.Put, Region: region, Offset: offset + uint64(at), Length: uint64(len(piece))}, piece, nil)
	}
}

// Get reads a rank's memory into b, which is filled after a Flush.
func (w *Window) Get(rank int, region, offset uint64, b []byte, batch *Batch) {
	w.e.lock()
	defer w.e.unlock()
	if mr, ok := w.reach(rank, rdma.OpRead); ok && region == 0 {
		w.transfer(rank, rdma.OpRead, mr, offset, b, batch)
		return
	}
	for at := 0; at < len(b); at += rma.MaxPiece {
		piece := b[at:min(at+rma.MaxPiece, len(b))]
		w.ask(rank, rma.Request{Kind: rma.Get, Region: region, Offset: offset + uint64(at), Length: uint64(len(piece))}, nil, nil, piece, batch)
	}
}

// Accumulate combines b with a rank's memory. If was is not nil, it gets what was
// there before; b may be nil with rma.NoOp.
func (w *Window) Accumulate(rank int, region, offset uint64, op rma.Op, b, was []byte, elem int, batch *Batch) {
	w.e.lock()
	defer w.e.unlock()
	n := max(len(b), len(was))
	step := max(rma.MaxPiece/elem, 1) * elem
	for at := 0; at < n; at += step {
		end := min(at+step, n)
		var in []byte
		if b != nil {
			in = b[at:end]
		}
		r := rma.Request{Kind: rma.Accumulate, Op: op, Region: region, Offset: offset + uint64(at), Length: uint64(end - at)}
		if was == nil {
			w.request(rank, r, in, nil)
			continue
		}
		r.Kind = rma.GetAccumulate
		if op == rma.NoOp {
			in = nil
		}
		w.ask(rank, r, in, nil, was[at:end], batch)
	}
}

// CompareSwap puts value in the place of expected; was gets what was there.
func (w *Window) CompareSwap(rank int, region, offset uint64, expected, value, was []byte) {
	w.e.lock()
	defer w.e.unlock()
	w.ask(rank, rma.Request{Kind: rma.CompareSwap, Region: region, Offset: offset, Length: uint64(len(was))}, expected, value, was, nil)
}

// move has the device write or read.
func (w *Window) transfer(rank int, op rdma.Op, mr rdma.MR, offset uint64, b []byte, batch *Batch) {
	if len(b) == 0 {
		return
	}
	w.stats.Transfers++
	x := w.e.m.New()
	x.Link, x.Buf = w.link(rank), b
	w.track(x, windowPart{rank: rank, counts: true, batch: batch})
	w.e.m.Transfer(x, op, mr.Base+offset, mr.RKey)
	w.e.settle()
}

// track keeps an operation of the window until it has ended.
func (w *Window) track(x *p2p.Xfer, p windowPart) {
	x.Owner = &w.waiter
	if n := len(w.free); n > 0 {
		x.Part = w.free[n-1]
		w.free = w.free[:n-1]
	} else {
		x.Part = int32(len(w.parts))
		w.parts = append(w.parts, windowPart{})
	}
	w.parts[x.Part] = p
	if p.counts {
		w.pending++
		w.peers[p.rank].pending++
		if p.batch != nil {
			p.batch.left++
		}
	}
}

// ask sends a request whose answer goes to was.
func (w *Window) ask(rank int, r rma.Request, data, more, was []byte, batch *Batch) {
	e := w.e
	if w.tag++; w.tag >= lastAnswer {
		w.tag = firstAnswer
	}
	r.Tag = w.tag
	x := e.m.New()
	x.Link, x.Ctx, x.Source, x.Tag = w.link(rank), w.comm.Ctx, int32(rank), w.tag
	x.Buf = e.getScratch(rma.AnswerHead + len(was))
	w.track(x, windowPart{rank: rank, counts: true, memory: x.Buf, answer: was, batch: batch})
	if e.failed != nil {
		e.m.Refuse(x, e.failed)
	} else {
		e.m.Recv(x)
	}
	w.send(rank, r, data, more)
}

// request sends a request without an answer.
func (w *Window) request(rank int, r rma.Request, data, more []byte) {
	w.peers[rank].unconfirmed = true
	w.send(rank, r, data, more)
}

func (w *Window) send(rank int, r rma.Request, data, more []byte) {
	w.stats.Requests++
	b := w.e.getScratch(rma.HeaderLen + len(data) + len(more))
	r.Encode(b)
	copy(b[rma.HeaderLen:], data)
	copy(b[rma.HeaderLen+len(data):], more)
	w.post(rank, requestTag, b)
	w.e.settle()
}

// post sends a message from borrowed memory.
func (w *Window) post(rank int, tag int32, b []byte) {
	e := w.e
	x := e.sendUrgent(w.link(rank), &w.comm, tag, b)
	switch {
	case x == nil:
		e.putScratch(b)
	case x.Done():
		w.fault(rank, x.Err)
		e.m.Free(x)
		e.putScratch(b)
	default:
		w.track(x, windowPart{rank: rank, memory: b})
	}
}

// sendUrgent starts a message that the peer should see even if it computes. It gives
// nil if nothing is left to do.
func (e *Engine) sendUrgent(l *p2p.Link, c *Comm, tag int32, b []byte) *p2p.Xfer {
	if wr := e.m.SendOne(l, c.Ctx, c.Rank, tag, b); wr != nil {
		wr[0].Flags |= rdma.Solicited
		e.post(l, wr[:])
		wr[0].Flags &^= rdma.Solicited
	} else if e.m.SendNow(l, c.Ctx, c.Rank, tag, b) {
		e.m.Out.WR[len(e.m.Out.WR)-1].Flags |= rdma.Solicited
		e.flush()
	} else {
		x := e.m.New()
		x.Link, x.Ctx, x.Source, x.Tag, x.Buf = l, c.Ctx, c.Rank, tag, b
		e.m.Send(x)
		if len(e.m.Out.WR) > 0 {
			e.flush()
		}
		return x
	}
	if len(l.Wait) == 0 && l.Err == nil {
		return nil
	}
	return e.adopt(l)
}

// listen posts the receive for the next request.
func (w *Window) postRecv() {
	e := w.e
	x := e.m.New()
	x.Ctx, x.Source, x.Tag, x.Buf = w.comm.Ctx, p2p.AnySource, requestTag, w.inbox
	x.Owner, x.Part = &w.waiter, servingPart
	w.serving = x
	e.m.Recv(x)
}

// ended is called when a message or move of the window has.
func (w *Window) ended(x *p2p.Xfer) {
	if x.Part == servingPart {
		w.serve(x)
		return
	}
	p := &w.parts[x.Part]
	err := x.Err
	if p.answer != nil || p.counts && p.memory != nil {
		err = readAnswer(p.memory, x, p.answer)
	}
	if err != nil {
		w.fault(p.rank, err)
	}
	if p.counts {
		w.pending--
		w.peers[p.rank].pending--
		if b := p.batch; b != nil {
			b.part(w.e, err)
		}
	}
	w.e.putScratch(p.memory)
	*p = windowPart{}
	w.free = append(w.free, x.Part)
	w.e.m.Free(x)
}

// readAnswer gives the bytes of an answer to whom they are for.
func readAnswer(b []byte, x *p2p.Xfer, to []byte) error {
	switch {
	case x.Err != nil:
		return x.Err
	case x.Len < rma.AnswerHead:
		return fmt.Errorf("%w: an answer of %d bytes", p2p.ErrProtocol, x.Len)
	case rma.Outcome(b[0]) != rma.Done:
		return &Refused{rma.Outcome(b[0])}
	case x.Len != rma.AnswerHead+len(to):
		return fmt.Errorf("%w: an answer of %d bytes where %d were asked for", p2p.ErrProtocol, x.Len-rma.AnswerHead, len(to))
	}
	copy(to, b[rma.AnswerHead:])
	return nil
}

// Refused says why a target did not do what it was asked for.
type Refused struct{ Outcome rma.Outcome }

func (r *Refused) Error() string { return r.Outcome.String() }

// fault notes what went wrong with a rank; a Flush will tell.
func (w *Window) fault(rank int, err error) {
	if p := &w.peers[rank]; p.err == nil {
		p.err = err
	}
}

// serve works on a request that has come. If an error ended the receive there will
// be no more: the job is broken, or the window closed.
func (w *Window) serve(x *p2p.Xfer) {
	from, n, over := x.Source, x.Len, x.Err != nil || x.Cancelled
	w.serving = nil
	w.e.m.Free(x)
	if over {
		return
	}
	w.stats.Served++
	answers := w.target.Serve(from, w.inbox[:n])
	if answers == nil {
		w.fault(int(from), fmt.Errorf("%w: a request of %d bytes is none of ours", p2p.ErrProtocol, n))
	} else {
		for _, a := range answers.List {
			b := w.e.getScratch(len(a.Data))
			copy(b, a.Data)
			w.post(int(a.To), a.Tag, b)
		}
	}
	w.postRecv()
}
