package engine

// Measures the costs of registering, copying and looking up when the device is opened
// (T1 5.3.3 uses a table made beforehand). It takes three milliseconds.
//
// The system call before a message leaves the processor's cache in a different state than
// a tight measuring loop does. Measured in such a loop, a copy of 8 KB cost three times
// what it adds between system calls, and a look-up a third, so the rule promised several
// times the real gain. Therefore the first-level cache is filled with other data before
// each try (spoil), and the cost of the copy is what it adds to a transfer: the kernel or
// the device reads the bytes next in any case, and finds a fresh copy in the cache.

import (
	"errors"
	"slices"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/regcache"
	"github.com/muster-mpi/muster/rdma"
)

const (
	sourceTries  = 15
	lookupTries  = 65
	registers    = 5
	spoilBytes   = 64 << 10 // more than a first-level cache
	cacheLine    = 64
	sourceSpread = 8 // buffers that a transfer cycles through
)

// sourceMeter times the steps of a message.
type sourceMeter struct {
	other []byte
	sum   byte // keeps the compiler from removing the reads of other
	times []time.Duration
	clock float64 // cost of reading the clock, in nanoseconds
}

func newSourceMeter() *sourceMeter {
	m := &sourceMeter{other: make([]byte, spoilBytes)}
	fill(m.other)
	m.clock = m.typical(lookupTries, func(int) {})
	return m
}

// spoil fills the first-level cache with other data.
func (m *sourceMeter) spoil() {
	for i := 0; i < len(m.other); i += cacheLine {
		m.sum += m.other[i]
	}
}

// typical returns the median time of a step, in nanoseconds.
func (m *sourceMeter) typical(tries int, thing func(try int)) float64 {
	m.times = m.times[:0]
	for i := range tries {
		m.spoil()
		began := time.Now()
		thing(i)
		m.times = append(m.times, time.Since(began))
	}
	slices.Sort(m.times)
	return max(float64(m.times[tries/2])-m.clock, 0)
}

// measureSources measures the rows of a device. regs is its cache.
func measureSources(dev rdma.Device, regs *regcache.Cache) ([]SourceRow, error) {
	most := 1 << sourceHigh
	from, block, to := make([]byte, most), make([]byte, most), make([]byte, 2*most)
	fill(from)
	fill(block)
	fill(to)
	meter := newSourceMeter()
	lookup, err := measureLookup(meter, dev, regs, from)
	if err != nil {
		return nil, err
	}
	var rows []SourceRow
	for class := sourceLow; class <= sourceHigh; class++ {
		r := SourceRow{Lo: 1 << (class - 1), Hi: 1<<class - 1, Lookup: lookup}
		n := r.Lo + r.Lo/2
		target := func(i int) []byte { return to[i%sourceSpread*n%most:][:n] }
		straight := meter.typical(sourceTries, func(i int) { copy(target(i), from[:n]) })
		through := meter.typical(sourceTries, func(i int) {
			copy(block[:n], from[:n])
			copy(target(i), block[:n])
		})
		r.Copy = max(through-straight, 1)
		if r.Register, err = measureRegister(dev, from[:n]); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// fill touches every page.
func fill(b []byte) {
	for i := 0; i < len(b); i += 1 << 10 {
		b[i] = byte(i)
	}
}

// least returns the shortest time of several tries, in nanoseconds: disturbances only
// make a try longer.
func least(try func()) float64 {
	best := time.Duration(1<<63 - 1)
	for range registers {
		began := time.Now()
		try()
		best = min(best, time.Since(began))
	}
	return float64(best)
}

// measureRegister measures the cost of Register and Deregister.
func measureRegister(dev rdma.Device, mem []byte) (ns float64, err error) {
	ns = least(func() {
		mr, e := dev.Register(mem, 0)
		if e == nil {
			e = dev.Deregister(mr)
		}
		if e != nil {
			err = e
		}
	})
	return ns, err
}

// measureLookup measures, for each Use, what using the program's buffer costs more than
// copying, without the copy itself: the count, the cache, and for sends an operation that
// waits for the completion, which a put or get has in any case. It uses a machine of its
// own that posts nothing.
func measureLookup(meter *sourceMeter, dev rdma.Device, regs *regcache.Cache, mem []byte) (ns [uses]float64, err error) {
	mem = mem[:sourceLeast]
	attr := dev.Attr()
	probe := &lookupProbe{lane: lane{dev: dev, attr: attr, regs: regs, sources: &sources{}}}
	probe.lane.openStages()
	s := probe.lane.sources
	s.uses = regcache.NewUses(regcache.UsesConfig{Frequent: func(int) uint32 { return 1 }})
	m := p2p.New(p2p.Config{Credit: 1 << 40, EagerLimit: 1 << 10}, probe)
	m.UseSources(probe)
	a := *attr
	a.SendCost, a.ReadCost, a.PutCost, a.PullCost = rdma.Cost{}, rdma.Cost{Fixed: 1}, rdma.Cost{Fixed: 1}, rdma.Cost{Fixed: 1}
	l := &p2p.Link{Attr: &a}
	m.SetUp(l)
	m.SourceFrom(l, 1)
	m.StageUpTo(l, stageMost)
	send := func(int) {
		wr, x := m.SendShort(l, 0, 0, 0, mem, true)
		if wr != nil && x != nil {
			m.HandleCompletion(x.Handle(), rdma.StatusOK, len(mem))
			m.Free(x)
		}
	}
	transfer := func(int) {
		x := m.New()
		x.Link, x.Buf = l, mem
		m.Transfer(x, rdma.OpWrite, 0, 0)
		m.Out.WR, m.Out.Link = m.Out.WR[:0], m.Out.Link[:0]
		m.HandleCompletion(x.Handle(), rdma.StatusOK, len(mem))
		m.Free(x)
	}
	copied, staged := meter.typical(lookupTries, send), meter.typical(lookupTries, transfer)
	for u := range uses {
		s.limits[u][sourceClass(len(mem))] = 1
	}
	mr, err := regs.Get(mem, 0)
	if err == nil {
		err = regs.Put(mr) // it stays registered until Drop
	}
	if err != nil {
		return ns, errors.Join(err, probe.lane.stages.close())
	}
	ns[UseWaits] = max(meter.typical(lookupTries, send)-copied, 1)
	ns[UseGoesOn] = ns[UseWaits]
	ns[UseOneSided] = max(meter.typical(lookupTries, transfer)-staged, 1)
	return ns, errors.Join(regs.Drop(mem), probe.lane.stages.close())
}

// lookupProbe implements p2p.Memory and p2p.Sources for that machine.
type lookupProbe struct{ lane lane }

func (p *lookupProbe) Source(_ *p2p.Link, mem []byte, _ bool) (rdma.MR, bool) {
	return p.lane.use(mem, UseWaits)
}

func (p *lookupProbe) TransferBuffer(_ *p2p.Link, mem []byte) (rdma.MR, bool, *p2p.Stage) {
	return p.lane.transferBuffer(mem)
}

func (p *lookupProbe) ReleaseStage(_ *p2p.Link, via *p2p.Stage) { p.lane.stages.put(via) }

func (p *lookupProbe) Register(_ *p2p.Link, mem []byte, acc rdma.Access) (rdma.MR, error) {
	return p.lane.regs.Get(mem, acc)
}

func (p *lookupProbe) Deregister(_ *p2p.Link, mr rdma.MR) { _ = p.lane.regs.Put(mr) }
