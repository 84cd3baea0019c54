package engine

// One-sided communication where memory is not mapped: by RDMA of the device, or by
// requests that the peer's progress engine serves. With the lock held:
//
//	own           an operation on the rank's own memory, done at once
//	Put, Get      an RDMA Write or Read (p2p/onesided.go); without RDMA, requests
//	Accumulate …  requests: a message, served by rma.Target, perhaps an answer
//	serve         handles an incoming request and sends the answers
//	Flush         waits for pending operations, and requests an answer behind
//	              requests that had none
//
// Requests are ordinary messages in a context of the window, received from any source by
// one receive that is always posted. So order, credit and long messages work as for all
// messages. They are solicited, and while a window is open the progress thread is
// active, so they are served while the application computes.

import (
	"encoding/binary"
	"fmt"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/rankset"
	"github.com/muster-mpi/muster/internal/rma"
	"github.com/muster-mpi/muster/internal/sparse"
	"github.com/muster-mpi/muster/rdma"
)

// Window is a rank's part of a window. Its methods take the lock and leave what needs it to
// those of heldWindow.
type Window struct{ held heldWindow }

func (win *Window) lock() *heldWindow {
	win.held.e.engine.lock()
	return &win.held
}

// heldWindow is a window whose rank's lock the caller holds.
type heldWindow struct {
	e       *Held
	comm    Comm
	target  *rma.Target
	ranks   *rankset.List
	size    int
	peers   sparse.Table[windowPeer] // those used so far, by rank
	used    []*windowPeer            // the same, in the order of their first use
	waiter  p2p.Waiter               // owner of all its messages and transfers
	inbox   []byte
	serving *p2p.Xfer
	closed  bool
	tag     int32
	parts   []windowPart
	free    []int32 // free indexes of parts
	pending int     // pending transfers and answers of all peers
	flushes []windowFlush
	mrs     []rdma.MR
	stats   WindowStats
}

// WindowStats counts the operations of a window.
type WindowStats struct {
	Transfers uint64 // RDMA Writes and Reads
	Requests  uint64 // requests sent
	Served    uint64
}

// windowPeer is a peer's memory and the operations pending there.
type windowPeer struct {
	rank   int
	known  bool // memory is known
	link   *p2p.Link
	memory WindowMemory
	// pending counts pending transfers and answers.
	pending int
	// unconfirmed reports that requests without an answer were sent since the last Flush.
	unconfirmed bool
	err         error // the first error since the last Flush
}

// windowFlush is a wait for all operations at a rank; x represents it.
type windowFlush struct {
	rank int
	x    *p2p.Xfer
}

// WindowMemory holds the addresses and keys of a rank's memory for the device of its
// host (Near) and for the network device (Far). A key is 0 where there is none.
type WindowMemory struct {
	Near, Far rdma.MR
}

// windowPart is a pending operation.
type windowPart struct {
	rank   int
	memory []byte // of the message, scratch memory
	answer []byte // destination of the answer's bytes
	counts bool   // it is included in pending
	batch  *Batch
}

// Batch is a call with a request of its own (MPI-4.1 section 12.3.6).
type Batch struct {
	x    *p2p.Xfer
	left int
	err  error
}

// servingPart is the Part of the receive for requests.
const servingPart = -1

// OpenWindow creates a rank's part of a window. comm is used only for its messages; ranks
// are the world ranks, nil if equal. memory, if not empty, is what peers may access by
// RDMA. All ranks call it before any of them uses the window.
func (r *Engine) OpenWindow(comm Comm, ranks *rankset.List, size int, target *rma.Target, memory []byte) (*Window, WindowMemory, error) {
	e := r.lock()
	defer e.unlock()
	win := &Window{heldWindow{e: e, comm: comm, target: target, ranks: ranks, size: size, tag: firstAnswer,
		inbox: make([]byte, rma.RequestMax)}}
	w := &win.held
	w.waiter.Whole = w
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
	target.Keys = exposed.encode()
	w.postRecv()
	e.settle()
	e.countWindow(1)
	return win, exposed, nil
}

// SetMemory sets the memory of a rank. If it is not set, the first transfer requests it.
// Requests of other ranks, which may be ahead, are served at the same time.
func (win *Window) SetMemory(rank int, m WindowMemory) {
	w := win.lock()
	defer w.e.unlock()
	p := w.peer(rank)
	p.memory, p.known = m, true
}

// peer returns the state of a rank, which is made on first use: few of many ranks are used.
func (w *heldWindow) peer(rank int) *windowPeer {
	p := w.peers.Get(rank)
	if p == nil {
		p = &windowPeer{rank: rank}
		w.peers.Set(rank, p)
		w.used = append(w.used, p)
	}
	return p
}

// encode returns the six numbers of a WindowMemory, for the answer to rma.Keys.
func (m *WindowMemory) encode() (b []byte) {
	for _, mr := range []rdma.MR{m.Near, m.Far} {
		for _, v := range []uint64{mr.Base, mr.Len, mr.RKey} {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return b
}

const windowMemoryBytes = 48

func decodeWindowMemory(b []byte) (m WindowMemory) {
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	m.Near = rdma.MR{Base: at(0), Len: at(1), RKey: at(2)}
	m.Far = rdma.MR{Base: at(3), Len: at(4), RKey: at(5)}
	return m
}

// countWindow counts the windows that need the progress thread to serve requests.
func (e *Held) countWindow(n int) {
	e.startThread()
	e.helpHome()
	e.thread.windows += n
	e.leaves = true
}

// Close ends the rank's part. Nothing is pending on any rank.
func (win *Window) Close() error {
	w := win.lock()
	e := w.e
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

func (w *heldWindow) deregister() (err error) {
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

// Stats returns the window's counters.
func (win *Window) Stats() WindowStats {
	w := win.lock()
	defer w.e.unlock()
	return w.stats
}

func (w *heldWindow) link(rank int) *p2p.Link {
	p := w.peer(rank)
	if p.link == nil {
		p.link = w.e.link(w.ranks.At(rank))
	}
	return p.link
}

// reach returns the key of a rank's memory for the device that reaches it. ok is false if
// the device does not support op, or the memory is not registered with it. It may wait for
// the key.
func (w *heldWindow) reach(rank int, op rdma.Op) (mr rdma.MR, ok bool) {
	d := w.e.lanes[w.link(rank).Dev]
	if !d.attr.Ops.Has(op) {
		return mr, false
	}
	p := w.peer(rank)
	if !p.known {
		w.requestKeys(p)
	}
	mr = p.memory.Far
	if d.local {
		mr = p.memory.Near
	}
	return mr, mr.RKey != 0
}

// requestKeys requests the keys of a rank's memory and waits for them. After an error, which
// the next Flush returns, they stay unknown.
func (w *heldWindow) requestKeys(p *windowPeer) {
	keys := make([]byte, windowMemoryBytes)
	w.ask(p.rank, rma.Request{Kind: rma.Keys, Length: windowMemoryBytes}, nil, nil, keys, nil)
	if err := w.await("Win.Keys", p.rank); err != nil {
		w.fault(p.rank, err)
		return
	}
	p.memory, p.known = decodeWindowMemory(keys), true
}

// Put writes b into a rank's memory. Region 0 is the window's own. b is in use until a
// Flush, or until the batch, if any, has completed.
func (win *Window) Put(rank int, region, offset uint64, b []byte, batch *Batch) {
	w := win.lock()
	defer w.e.unlock()
	if w.isOwn(rank) {
		w.own(rma.Request{Kind: rma.Put, Region: region, Offset: offset, Length: uint64(len(b))}, b, nil, batch)
		return
	}
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
func (win *Window) Get(rank int, region, offset uint64, b []byte, batch *Batch) {
	w := win.lock()
	defer w.e.unlock()
	if w.isOwn(rank) {
		w.own(rma.Request{Kind: rma.Get, Region: region, Offset: offset, Length: uint64(len(b))}, nil, b, batch)
		return
	}
	if mr, ok := w.reach(rank, rdma.OpRead); ok && region == 0 {
		w.transfer(rank, rdma.OpRead, mr, offset, b, batch)
		return
	}
	for at := 0; at < len(b); at += rma.MaxPiece {
		piece := b[at:min(at+rma.MaxPiece, len(b))]
		w.ask(rank, rma.Request{Kind: rma.Get, Region: region, Offset: offset + uint64(at), Length: uint64(len(piece))}, nil, nil, piece, batch)
	}
}

// Accumulate combines b with a rank's memory. If was is not nil, it receives the previous
// contents; b may be nil with rma.NoOp.
func (win *Window) Accumulate(rank int, region, offset uint64, op rma.Op, b, was []byte, elem *rma.Elements, batch *Batch) {
	w := win.lock()
	defer w.e.unlock()
	n := max(len(b), len(was))
	step := max(rma.MaxPiece/elem.Size, 1) * elem.Size
	for at := 0; at < n; at += step {
		end := min(at+step, n)
		var in []byte
		if b != nil {
			in = b[at:end]
		}
		r := rma.Request{Kind: rma.Accumulate, Op: op, Code: elem.Code, Region: region, Offset: offset + uint64(at), Length: uint64(end - at)}
		var out []byte
		if was != nil {
			r.Kind, out = rma.GetAccumulate, was[at:end]
			if op == rma.NoOp {
				in = nil
			}
		}
		switch {
		case w.isOwn(rank):
			w.own(r, in, out, batch)
		case was == nil:
			w.request(rank, r, in, nil)
		default:
			w.ask(rank, r, in, nil, out, batch)
		}
	}
}

// CompareSwap replaces expected by value; was receives the previous contents.
func (win *Window) CompareSwap(rank int, region, offset uint64, expected, value, was []byte) {
	w := win.lock()
	defer w.e.unlock()
	r := rma.Request{Kind: rma.CompareSwap, Region: region, Offset: offset, Length: uint64(len(was))}
	if w.isOwn(rank) {
		b := w.e.scratch.get(2 * len(was))
		copy(b[copy(b, expected):], value)
		w.own(r, b, was, nil)
		w.e.scratch.put(b)
		return
	}
	w.ask(rank, r, expected, value, was, nil)
}

func (w *heldWindow) isOwn(rank int) bool { return rank == int(w.comm.Rank) }

// own does an operation on the rank's own memory. Requests of other ranks are served with
// the lock held, too, so accumulates are atomic. The program may use the result, or free
// its memory, before the next synchronization: many do, because other implementations do
// these operations at once.
func (w *heldWindow) own(r rma.Request, data, was []byte, batch *Batch) {
	out, outcome := w.target.Access(r, data)
	copy(was, out)
	if outcome == rma.Done {
		return
	}
	err := &Refused{outcome}
	w.fault(int(w.comm.Rank), err)
	if batch != nil && batch.err == nil {
		batch.err = err
	}
}

// transfer starts an RDMA Write or Read.
func (w *heldWindow) transfer(rank int, op rdma.Op, mr rdma.MR, offset uint64, b []byte, batch *Batch) {
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

// track keeps an operation of the window until it completes.
func (w *heldWindow) track(x *p2p.Xfer, p windowPart) {
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
		w.peer(p.rank).pending++
		if p.batch != nil {
			p.batch.left++
		}
	}
}

// ask sends a request whose answer goes to was.
func (w *heldWindow) ask(rank int, r rma.Request, data, more, was []byte, batch *Batch) {
	e := w.e
	if w.tag++; w.tag >= lastAnswer {
		w.tag = firstAnswer
	}
	r.Tag = w.tag
	x := e.m.New()
	x.Link, x.Ctx, x.Source, x.Tag = w.link(rank), w.comm.Ctx, int32(rank), w.tag
	x.Buf = e.scratch.get(rma.AnswerHead + len(was))
	w.track(x, windowPart{rank: rank, counts: true, memory: x.Buf, answer: was, batch: batch})
	if e.failed != nil {
		e.m.Refuse(x, e.failed)
	} else {
		e.m.Recv(x)
	}
	w.send(rank, r, data, more)
}

// request sends a request without an answer.
func (w *heldWindow) request(rank int, r rma.Request, data, more []byte) {
	w.peer(rank).unconfirmed = true
	w.send(rank, r, data, more)
}

func (w *heldWindow) send(rank int, r rma.Request, data, more []byte) {
	w.stats.Requests++
	b := w.e.scratch.get(rma.HeaderLen + len(data) + len(more))
	r.Encode(b)
	copy(b[rma.HeaderLen:], data)
	copy(b[rma.HeaderLen+len(data):], more)
	w.post(rank, requestTag, b)
	w.e.settle()
}

// post sends a message from scratch memory.
func (w *heldWindow) post(rank int, tag int32, b []byte) {
	e := w.e
	x, sent := e.startShort(w.link(rank), &w.comm, tag, b, sendUrgent)
	switch {
	case sent:
		e.scratch.put(b)
	case x.Done():
		w.fault(rank, x.Err)
		e.m.Free(x)
		e.scratch.put(b)
	default:
		w.track(x, windowPart{rank: rank, memory: b})
	}
}

// postRecv posts the receive for the next request.
func (w *heldWindow) postRecv() {
	e := w.e
	x := e.m.New()
	x.Ctx, x.Source, x.Tag, x.Buf = w.comm.Ctx, p2p.AnySource, requestTag, w.inbox
	x.Owner, x.Part = &w.waiter, servingPart
	w.serving = x
	e.m.Recv(x)
}

// complete handles the completion of a message or transfer of the window.
func (w *heldWindow) complete(x *p2p.Xfer) {
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
		if peer := w.peer(p.rank); peer.endOne() && len(w.flushes) > 0 {
			w.completeFlushes(p.rank)
		}
		if b := p.batch; b != nil {
			b.part(w.e, err)
		}
	}
	w.e.scratch.put(p.memory)
	*p = windowPart{}
	w.free = append(w.free, x.Part)
	w.e.m.Free(x)
}

// endOne records the end of an operation and reports whether it was the last one.
func (p *windowPeer) endOne() bool {
	p.pending--
	return p.pending == 0
}

// readAnswer copies the bytes of an answer to their destination.
func readAnswer(b []byte, x *p2p.Xfer, to []byte) error {
	switch {
	case x.Err != nil:
		return x.Err
	case x.Len < rma.AnswerHead:
		return fmt.Errorf("%w: an answer of %d bytes", p2p.ErrProtocol, x.Len)
	case rma.Outcome(b[0]) != rma.Done:
		return &Refused{rma.Outcome(b[0])}
	case x.Len != rma.AnswerHead+len(to):
		return fmt.Errorf("%w: an answer of %d bytes where %d were requested", p2p.ErrProtocol, x.Len-rma.AnswerHead, len(to))
	}
	copy(to, b[rma.AnswerHead:])
	return nil
}

// Refused reports why a target rejected a request.
type Refused struct{ Outcome rma.Outcome }

func (r *Refused) Error() string { return r.Outcome.String() }

// fault records an error with a rank, which the next Flush returns.
func (w *heldWindow) fault(rank int, err error) {
	if uint(rank) >= uint(w.size) {
		return // a request of a rank that does not exist
	}
	if p := w.peer(rank); p.err == nil {
		p.err = err
	}
}

// serve handles an incoming request. If the receive failed there will be no more: the
// job has failed, or the window is closed.
func (w *heldWindow) serve(x *p2p.Xfer) {
	from, n, over := x.Source, x.Len, x.Err != nil || x.Cancelled
	w.serving = nil
	w.e.m.Free(x)
	if over {
		return
	}
	w.stats.Served++
	answers := w.target.Serve(from, w.inbox[:n])
	if answers == nil {
		w.fault(int(from), fmt.Errorf("%w: a request of %d bytes is invalid", p2p.ErrProtocol, n))
	} else {
		for _, a := range answers.List {
			b := w.e.scratch.get(len(a.Data))
			copy(b, a.Data)
			w.post(int(a.To), a.Tag, b)
		}
	}
	w.postRecv()
}
