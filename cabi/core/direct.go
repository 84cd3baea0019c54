package core

// The direct path: the front sends and receives short messages over shared memory itself
// (cabi/front/direct.c). This file tells it where the words of the engine are, posts the
// receives that it has not got a message for, and knows its requests.

import (
	"runtime"
	"slices"
	"sync"

	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/internal/direct"
	"github.com/muster-mpi/muster/mpi"
)

// directPath is the core's end of the direct path.
type directPath struct {
	mem    *direct.Front // memory of the front
	pins   direct.Pins
	tables [direct.MaxComms]runtime.Pinner // of Comm.Ranks
	engine cbinding.Direct

	mu       sync.Mutex // guards what follows, and the receives of the front while they are posted
	requests [direct.MaxReceives]*request
}

// directBit is in the handles of requests that the front has made. Number 0 is that of all
// sends, which are complete.
const directBit handle = 0x02000000

// open gets the memory of the front and lists the types that it may send as they are.
func (d *directPath) open(p *Process, front uintptr) {
	d.mem = at[direct.Front](front)
	for i, t := range p.base.types {
		if t != nil && t.flat > 0 && t.flat == int(t.handle>>8&0xff) {
			d.mem.Types[i] = uint32(t.handle)
		}
	}
}

// close ends the direct path: the job is over.
func (d *directPath) close() {
	if d.mem != nil {
		clear(d.mem.Comms[:])
	}
}

// share lets the front use a communicator and the peer that a call names. The results are
// the goroutine of the calling thread if it owns the engine's lock, or 0, and whether the
// peer was shared.
func (d *directPath) share(p *Process, a *args) {
	h, rank := a.handle(0), a.int(1)
	a.v[0], a.v[2] = 0, 0
	c := p.comm(h)
	if c == nil || p.state.Load() != running {
		return
	}
	e, ok := cbinding.Get().Direct(c.Comm)
	if !ok {
		return
	}
	owner, spin := e.Engine(&d.mem.Engine, &d.pins)
	if owner == 0 {
		return
	}
	d.engine, d.mem.Spin = e, int64(spin)
	a.v[0] = uint64(owner)
	slot := 0
	if h != commWorld {
		slot = int(h&slotMask) + 1
	}
	if h != commSelf && slot < direct.MaxComms {
		d.tables[slot].Unpin()
		t := direct.Comm{Handle: int32(h), Context: e.Context, Rank: int32(c.Rank()), Size: int32(c.Size())}
		if ranks := e.Ranks.Table(); len(ranks) > 0 {
			t.Ranks = &ranks[0]
			d.tables[slot].Pin(t.Ranks)
		}
		d.mem.Comms[slot] = t
	}
	if uint(rank) >= uint(c.Size()) {
		return
	}
	rank = e.Ranks.At(rank)
	var t direct.Peer
	if rank < direct.MaxPeers && e.Progress.DirectPeer(rank, &t, &d.pins) {
		d.mem.Peers[rank] = t
		a.v[2] = 1
	}
}

// forget removes a communicator that is freed.
func (d *directPath) forget(h handle) {
	if d.mem == nil {
		return
	}
	i := slices.IndexFunc(d.mem.Comms[:], func(c direct.Comm) bool { return c.Handle == int32(h) })
	if i >= 0 {
		d.mem.Comms[i] = direct.Comm{}
		d.tables[i].Unpin()
	}
}

// pending reports whether the front has receives that the core does not have.
func (d *directPath) pending() bool { return d.mem != nil && d.mem.First != d.mem.Last }

// post posts the receives of the front, in their order. It is done before anything else in a
// call. Another thread that calls meanwhile waits.
func (d *directPath) post(p *Process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.engine.RunLocked(func() {}) // a call of the front has ended, and none begins on another thread
	f := d.mem
	for ; f.First != f.Last; f.First++ {
		addr := f.Queue[f.First%direct.MaxQueue]
		if addr == 0 {
			continue
		}
		in := at[direct.Receive](addr)
		r := p.spare.get()
		r.comm = p.comm(handle(in.Comm))
		r.Request = mpi.Irecv(r.comm.Comm, memory[byte](uintptr(in.Buf), int(in.Room)), int(in.Source), int(in.Tag))
		d.requests[(addr-addressOf(f.Receives[:]))/uintptr(sizeOf[direct.Receive]())] = r
		in.State = direct.InCore
	}
}

// number returns the number of a request that the front has made.
func (d *directPath) number(h handle) (i int, ok bool) {
	i = int(h & (directBit - 1))
	return i, h&^(directBit-1) == made|kindRequest|directBit && i < direct.MaxReceives
}

// request returns a request that the front has made, or nil.
func (d *directPath) request(p *Process, h handle) *request {
	i, ok := d.number(h)
	if !ok || d.mem == nil {
		return nil
	}
	if i == 0 {
		r := p.spare.get()
		r.send, r.over, r.status = true, true, emptyStatus
		return r
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if in := &d.mem.Receives[i]; d.requests[i] == nil && in.State == direct.Done {
		r := p.spare.get()
		r.comm, r.over = p.comm(handle(in.Comm)), true
		r.status = status{source: in.GotSource, tag: in.GotTag, length: int64(in.Got)}
		d.requests[i], in.State = r, direct.InCore
	}
	return d.requests[i]
}

// remove ends a request if the front has made it.
func (d *directPath) remove(h handle) bool {
	i, ok := d.number(h)
	if ok && i > 0 {
		d.mu.Lock()
		d.requests[i] = nil
		d.mem.Receives[i].State = direct.Free
		d.mu.Unlock()
	}
	return ok
}
