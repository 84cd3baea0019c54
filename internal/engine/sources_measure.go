package engine

// What registering, copying and looking up cost, measured on the device when it is opened
// (T1 5.3.3 has the three in a table that was made beforehand). It takes less than a
// millisecond. The least of several tries is taken: what comes from elsewhere makes a try
// longer, never shorter.

import (
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
	lookup, err := measureLookup(regs, dev.Attr(), from)
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

// measureLookup is what it costs more to send from the user's buffer than to send inline,
// the copy apart: the count, the cache, and an operation that waits for the end. A machine
// of its own does it, without a device.
func measureLookup(regs *regcache.Cache, attr *rdma.Attr, mem []byte) (ns float64, err error) {
	mem = mem[:sourceLeast]
	probe := &lookupProbe{lane: lane{attr: attr, regs: regs, sources: &sources{}}}
	s := probe.lane.sources
	s.uses = regcache.NewUses(regcache.UsesConfig{Frequent: func(int) uint32 { return 1 }})
	m := p2p.New(p2p.Config{Credit: 1 << 40, EagerLimit: 1 << 10}, probe)
	m.UseSources(probe)
	a := *attr
	a.SendCost, a.ReadCost, a.PutCost, a.PullCost = rdma.Cost{}, rdma.Cost{Fixed: 1}, rdma.Cost{Fixed: 1}, rdma.Cost{Fixed: 1}
	l := &p2p.Link{Attr: &a}
	m.SetUp(l)
	m.SourceFrom(l, 1)
	turn := func() {
		for range sourceBatch {
			wr, x := m.SendShort(l, 0, 0, 0, mem, true)
			if wr != nil && x != nil {
				m.Completed(x.Handle(), rdma.StatusOK, len(mem))
				m.Free(x)
			}
		}
	}
	copied := least(turn)
	for u := range uses {
		s.limits[u][sourceClass(len(mem))] = 1
	}
	mr, err := regs.Get(mem, 0)
	if err == nil {
		err = regs.Put(mr) // it stays registered until Drop
	}
	if err != nil {
		return 0, err
	}
	direct := least(turn)
	return max(direct-copied, 0) / sourceBatch, regs.Drop(mem)
}

// lookupProbe is the shell of that machine.
type lookupProbe struct{ lane lane }

func (p *lookupProbe) Source(_ *p2p.Link, mem []byte, _ bool) (rdma.MR, bool) {
	return p.lane.use(mem, UseWaits)
}

func (p *lookupProbe) Register(_ *p2p.Link, mem []byte, acc rdma.Access) (rdma.MR, error) {
	return p.lane.regs.Get(mem, acc)
}

func (p *lookupProbe) Deregister(_ *p2p.Link, mr rdma.MR) { _ = p.lane.regs.Put(mr) }
