package mpi

// The time in which a rank packs and unpacks the data of layouts, in its trace: a copy may precede
// the call or follow it.

import "math"

// packing is a copy that is under way. The zero packing is not timed.
type packing struct {
	t     *tracer
	begin int64
}

// beginPacking begins to time a copy if there is a trace.
func (w *World) beginPacking() packing {
	t := w.watch.tracer
	if t == nil {
		return packing{}
	}
	return packing{t, t.clock.Now()}
}

// endPack ends a copy of data to send. Its time is that of the call under way, or else the next one.
func (p packing) endPack() { p.end(true) }

// endUnpack ends a copy of received data. Its time is that of the call under way, or else the last one.
func (p packing) endUnpack() { p.end(false) }

func (p packing) end(sends bool) {
	t := p.t
	if t == nil {
		return
	}
	took := t.clock.Now() - p.begin
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.dropped > 0 {
		return
	}
	if sends && (t.n == 0 || t.record(uint64(t.n)).end != 0) {
		t.packing += took
	} else if t.n > 0 {
		t.record(uint64(t.n)).addPacking(took)
	}
}

// addPacking adds the time of a copy in ns, up to two seconds.
func (r *traceRecord) addPacking(took int64) {
	r.packing = int32(min(int64(r.packing)+took, math.MaxInt32))
}

// pack packs the blocks of an exchange with layouts; x may be nil.
func (c *Comm) pack(x *packedExchange) {
	if x != nil {
		p := c.w.beginPacking()
		x.pack()
		p.endPack()
	}
}

// unpack unpacks received data of n bytes.
func (c *Comm) unpack(l landing, n int) {
	p := c.w.beginPacking()
	l.unpack(n)
	p.endUnpack()
}
