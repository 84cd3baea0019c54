package engine

// What registering, copying and looking up cost, measured on the device when it is opened
// (T1 5.3.3 has the three in a table that was made beforehand). It takes less than a
// millisecond. The least of several tries is taken: what comes from elsewhere makes a try
// longer, never shorter.

import (
	"errors"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/regcache"
	"github.com/muster-mpi/muster/rdma"
)

const (
	sourceTries = 5
	sourceBatch = 16 // operations that are timed together
)

// measureSources measures the rows of a device. regs is its cache.
func measureSources(dev rdma.Device, regs *regcache.Cache) ([]SourceRow, error) {
	most := 1<<sourceHigh - 1
	from, to := make([]byte, 2*most), make([]byte, 2*most)
	fill(from)
	fill(to)
	lookup, err := measureLookup(dev, regs, from)
	if err != nil {
		return nil, err
	}
	var rows []SourceRow
	for class := sourceLow; class <= sourceHigh; class++ {
		r := SourceRow{Lo: 1 << (class - 1), Hi: 1<<class - 1, Lookup: lookup}
		n := r.Lo + r.Lo/2
		r.Copy = least(func() {
			for i := range sourceBatch {
				copy(to[i%2*most:][:n], from[(i+1)%2*most:][:n])
			}
		}) / sourceBatch
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

// least is the shortest time of several tries, in nanoseconds.
func least(try func()) float64 {
	best := time.Duration(1<<63 - 1)
	for range sourceTries {
		began := time.Now()
		try()
		best = min(best, time.Since(began))
	}
	return float64(best)
}

// measureRegister is the cost of Register and Deregister.
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

// measureLookup is what it costs more to use the program's buffer than to copy, the copy
// apart, for each Use: the count, the cache, and for sends an operation that waits for the end,
// which a put or get has in any case. A machine of its own does it, and posts nothing.
func measureLookup(dev rdma.Device, regs *regcache.Cache, mem []byte) (ns [uses]float64, err error) {
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
	send := func() {
		for range sourceBatch {
			wr, x := m.SendShort(l, 0, 0, 0, mem, true)
			if wr != nil && x != nil {
				m.Completed(x.Handle(), rdma.StatusOK, len(mem))
				m.Free(x)
			}
		}
	}
	move := func() {
		for range sourceBatch {
			x := m.New()
			x.Link, x.Buf = l, mem
			m.Move(x, rdma.OpWrite, 0, 0)
			m.Out.WR, m.Out.Link = m.Out.WR[:0], m.Out.Link[:0]
			m.Completed(x.Handle(), rdma.StatusOK, len(mem))
			m.Free(x)
		}
	}
	copied, staged := least(send), least(move)
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
	ns[UseWaits] = max(least(send)-copied, 0) / sourceBatch
	ns[UseGoesOn] = ns[UseWaits]
	ns[UseOneSided] = max(least(move)-staged, 0) / sourceBatch
	return ns, errors.Join(regs.Drop(mem), probe.lane.stages.close())
}

// lookupProbe is the shell of that machine.
type lookupProbe struct{ lane lane }

func (p *lookupProbe) Source(_ *p2p.Link, mem []byte, _ bool) (rdma.MR, bool) {
	return p.lane.use(mem, UseWaits)
}

func (p *lookupProbe) Place(_ *p2p.Link, mem []byte) (rdma.MR, bool, *p2p.Stage) {
	return p.lane.place(mem)
}

func (p *lookupProbe) Unplace(_ *p2p.Link, via *p2p.Stage) { p.lane.stages.put(via) }

func (p *lookupProbe) Register(_ *p2p.Link, mem []byte, acc rdma.Access) (rdma.MR, error) {
	return p.lane.regs.Get(mem, acc)
}

func (p *lookupProbe) Deregister(_ *p2p.Link, mr rdma.MR) { _ = p.lane.regs.Put(mr) }
