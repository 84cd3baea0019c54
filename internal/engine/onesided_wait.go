package engine

// Waiting for pending operations of a window: Flush, the lock of a rank's memory, and
// batches, which are waited for like sends and receives.

import (
	"slices"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/rma"
)

// NewBatch creates a batch. Operations are started with it; Seal ends the list.
func (*Engine) NewBatch() *Batch { return &Batch{left: 1} }

// Seal returns the operation that represents a batch. The Op is zero if the batch has
// completed without an error.
func (r *Engine) Seal(b *Batch) Op {
	e := r.lock()
	defer e.unlock()
	if b.left--; b.left == 0 && b.err == nil {
		return Op{}
	}
	b.x = e.m.New()
	b.x.Source, b.x.Tag = Nobody, p2p.AnyTag
	if b.left == 0 {
		e.m.Refuse(b.x, b.err)
	}
	return Op{b.x, b.x.Handle()}
}

// part records the completion of an operation of a batch.
func (b *Batch) part(e *Held, err error) {
	if b.left--; b.err == nil {
		b.err = err
	}
	if b.left == 0 && b.x != nil {
		e.m.Refuse(b.x, b.err)
	}
}

// Flush waits until all operations at a rank have completed there; with local, until
// their buffers may be reused and their results have arrived.
func (win *Window) Flush(op string, rank int, local bool) error {
	w := win.lock()
	defer w.e.unlock()
	w.confirm(rank, local)
	w.admit()
	return w.await(op, rank)
}

// admit polls if there is nothing to wait for, so that a program that waits for a change of
// its own memory by accumulates and flushes lets the requests of other ranks in.
func (w *heldWindow) admit() {
	if w.pending == 0 {
		w.e.look()
	}
}

// confirm requests an answer behind requests that had none. Requests are copied when they
// are sent, so they are complete locally.
func (w *heldWindow) confirm(rank int, local bool) {
	if p := w.peer(rank); p.unconfirmed && !local {
		p.unconfirmed = false
		w.ask(rank, rma.Request{Kind: rma.Flush}, nil, nil, nil, nil)
	}
}

// await waits until nothing is pending to a rank, and returns the first error. The
// operation that it waits for completes with the last one there.
func (w *heldWindow) await(op string, rank int) error {
	p := w.peer(rank)
	if p.pending > 0 {
		x := w.e.m.New()
		x.Link, x.Ctx, x.Source, x.Tag = w.link(rank), w.comm.Ctx, Nobody, p2p.AnyTag
		w.flushes = append(w.flushes, windowFlush{rank, x})
		w.e.waitOne(x, &w.comm, op)
		w.e.m.Free(x)
		if w.e.failed != nil {
			return w.e.failed
		}
	}
	err := p.err
	p.err = nil
	return err
}

// completeFlushes completes the waits for a rank where nothing is pending any more.
func (w *heldWindow) completeFlushes(rank int) {
	w.flushes = slices.DeleteFunc(w.flushes, func(f windowFlush) bool {
		if f.rank == rank {
			w.e.m.Refuse(f.x, nil)
		}
		return f.rank == rank
	})
}

// FlushAll is Flush for all ranks. rank is one with an error.
func (win *Window) FlushAll(op string, local bool) (rank int, err error) {
	w := win.lock()
	defer w.e.unlock()
	used := w.used // those used while it waits are not included
	for _, p := range used {
		w.confirm(p.rank, local)
	}
	w.admit()
	for _, p := range used {
		if err := w.await(op, p.rank); err != nil {
			return p.rank, err
		}
	}
	return 0, nil
}

// Lock locks the memory of a rank by request, and waits until the lock is granted.
func (win *Window) Lock(op string, rank int, exclusive bool) error {
	w := win.lock()
	defer w.e.unlock()
	w.askLock(rank, exclusive)
	return w.await(op, rank)
}

func (w *heldWindow) askLock(rank int, exclusive bool) {
	kind := rma.LockShared
	if exclusive {
		kind = rma.LockExclusive
	}
	w.ask(rank, rma.Request{Kind: kind}, nil, nil, nil, nil)
}

// Unlock waits for pending operations and releases the lock.
func (win *Window) Unlock(op string, rank int) error {
	w := win.lock()
	defer w.e.unlock()
	err := w.await(op, rank)
	w.releaseLock(rank)
	if uerr := w.await(op, rank); err == nil {
		err = uerr
	}
	return err
}

// releaseLock sends the request to release the lock. It asks for an answer only if the
// answer confirms earlier requests.
func (w *heldWindow) releaseLock(rank int) {
	if p := w.peer(rank); p.unconfirmed {
		p.unconfirmed = false
		w.ask(rank, rma.Request{Kind: rma.Unlock}, nil, nil, nil, nil)
		return
	}
	w.send(rank, rma.Request{Kind: rma.Unlock}, nil, nil)
}

// LockAll locks the memory of all ranks, shared.
func (win *Window) LockAll(op string) (rank int, err error) {
	w := win.lock()
	defer w.e.unlock()
	for r := range w.size {
		w.askLock(r, false)
	}
	return w.awaitAll(op)
}

// UnlockAll waits for pending operations and releases all locks.
func (win *Window) UnlockAll(op string) (rank int, err error) {
	w := win.lock()
	defer w.e.unlock()
	rank, err = w.awaitAll(op)
	for r := range w.size {
		w.releaseLock(r)
	}
	if r, uerr := w.awaitAll(op); err == nil {
		rank, err = r, uerr
	}
	return rank, err
}

func (w *heldWindow) awaitAll(op string) (rank int, err error) {
	for _, p := range w.used {
		if rerr := w.await(op, p.rank); err == nil && rerr != nil {
			rank, err = p.rank, rerr
		}
	}
	return rank, err
}

// Attach adds memory to a window and returns its region.
func (win *Window) Attach(mem []byte) uint64 {
	w := win.lock()
	defer w.e.unlock()
	return w.target.Attach(mem)
}

// AttachAt adds memory that peers name by its address. It returns false if memory is attached
// there already.
func (win *Window) AttachAt(address uint64, mem []byte) bool {
	w := win.lock()
	defer w.e.unlock()
	return w.target.AttachAt(address, mem)
}

// DetachAt removes the memory at an address. It returns false if there is none.
func (win *Window) DetachAt(address uint64) bool {
	w := win.lock()
	defer w.e.unlock()
	return w.target.DetachAt(address)
}

// Detach removes a region. It returns false if there is no such region.
func (win *Window) Detach(region uint64) bool {
	w := win.lock()
	defer w.e.unlock()
	return w.target.Detach(region)
}
