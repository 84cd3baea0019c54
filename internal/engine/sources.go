package engine

// Sending short messages from the user's buffer (T1 5.3, P1): the engine's part of
// p2p/source.go. A lane whose device needs local memory registered has a table of buffer
// use counts, and for each length the number of uses from which registering the buffer
// pays:
//
//	Source      counts a use; below the limit: copy; from the limit on: get a
//	            registration from the cache
//	Deregister  returns the registration to the cache when the device has finished
//
// The limit is n > R/(C−V), where R is the cost to register, C to copy, and V to count and
// look up, all measured when the device is opened (sources_measure.go). The buffer is
// registered after a quarter of n uses, in the expectation of as many more. Lengths where
// C < 2V, or C−V is under a fiftieth of the transfer, and lengths below 128 bytes, skip
// the table.
//
// A send from the user's buffer completes when the device has finished with it, a copied
// one at once. So a blocking send also pays for the device's completion (Attr.EndCost)
// and copies, unless that cost is 0. A nonblocking send copies where the completion takes
// more than a round trip. Puts and gets wait for the peer in any case; stages.go has
// their bounce buffers. Decision 033 gives the reasons.
//
// Messages of collectives count in the same table (T1 5.5.1), as blocking sends if nothing
// but its sends keeps the caller, else as nonblocking ones. They copy on a device without
// EndCost: there this processor moves the bytes, and learning that it has done so takes a
// poll of the sockets, which costs more than the copy (decision 065).

import (
	"fmt"
	"math/bits"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/regcache"
	"github.com/muster-mpi/muster/rdma"
)

// Use is what a buffer is used for, which decides whether registering it pays.
type Use uint8

const (
	UseWaits  Use = iota // a blocking send
	UseGoesOn            // a nonblocking send
	UseOneSided
	uses
)

const (
	sourceLeast = 128 // T1 5.5.1: below, nothing is gained
	sourceLow   = 8   // bits.Len of it
	sourceHigh  = 17  // bits.Len of the longest: 64 KiB
	speculative = 4   // a buffer is registered after this fraction of the uses that would pay
	sourceAgain = 2   // and not before its second use
	// sourceMargin is the least ratio of the copy's cost to the overhead, and sourceFloor
	// the least fraction of the transfer that the gain must be: less is within the noise
	// between two identical runs (decision 033).
	sourceMargin = 2
	sourceFloor  = 0.02
	sourceHot    = 64
	sampleFrom   = 256 // least number of buffers for the statistics to be meaningful
	sampleEvery  = 8   // sampling counts one of so many messages

	// FrequentAlways registers at the first use, FrequentNever never.
	FrequentAlways, FrequentNever = "always", "never"
)

// SourceRow holds the cost estimates for messages of Lo to Hi bytes, in nanoseconds.
type SourceRow struct {
	Lo, Hi         int
	Register, Copy float64
	Lookup         [uses]float64
	// Uses is the number of uses from which registering pays, for each Use; 0: never.
	Uses [uses]uint32
}

// sources is the buffer table of a lane.
type sources struct {
	uses   *regcache.Uses
	rows   []SourceRow
	limits [uses][sourceHigh + 1]uint32 // by bits.Len of the length; 0: never
	least  int                          // the shortest length for which a send uses the table; p2p.MaxSize: none
	stats  SourceStats
	// collectives reports whether messages of collectives use the table.
	collectives bool

	// hot caches recently registered buffers, which saves a look-up in the table: that
	// may miss the processor's cache. A new generation clears it.
	hot [sourceHot]hotBuffer
	gen uint32
	// sampling reports that most buffers in the table are not used again. Then only few
	// messages are counted, so a program without reuse pays almost nothing.
	sampling bool
	calls    uint32
}

type hotBuffer struct {
	addr uint64
	size int
}

// SourceStats counts the decisions.
type SourceStats struct {
	Direct     uint64 // messages, puts and gets without a copy
	Collective uint64 // of these, messages of collectives
	Ring       uint64 // of these, messages written into a ring
	Copied     uint64 // copied: the buffer is not used often enough
	Refused    uint64 // copied: the device could not register the buffer
	Table      regcache.UsesStats
}

// openSources creates the buffer table of a lane, if its device gains from it.
func (e *Held) openSources(d *lane) error {
	if !d.attr.LocalKeys || !d.attr.Pins || e.cfg.Frequent == FrequentNever || e.cfg.RegisterCache < 0 {
		return nil
	}
	rows, err := measureSources(d.dev, d.regs)
	if err != nil {
		return fmt.Errorf("what registering costs on %s: %w", d.attr.Name, err)
	}
	always := e.cfg.Frequent == FrequentAlways
	s := &sources{rows: rows, least: p2p.MaxSize, collectives: always || d.attr.EndCost > 0}
	for i := range rows {
		s.settle(&rows[i], d.attr, always)
	}
	s.uses = regcache.NewUses(regcache.UsesConfig{Frequent: s.frequent})
	d.sources = s
	return nil
}

// settle computes the limits of a row.
func (s *sources) settle(r *SourceRow, a *rdma.Attr, always bool) {
	class := bits.Len(uint(r.Hi))
	end := [uses]float64{UseWaits: a.EndCost}
	if a.EndCost > 2*a.SendCost.Fixed {
		end[UseGoesOn] = a.EndCost // too long to overlap with the caller's work
	}
	whole := [uses]rdma.Cost{a.SendCost, a.SendCost, a.PutCost}
	for u := range uses {
		overhead := r.Lookup[u] + end[u]
		n, pays := regcache.Threshold(rdma.Cost{Fixed: r.Register}, rdma.Cost{Fixed: r.Copy}, overhead, 0)
		pays = pays && r.Copy >= sourceMargin*overhead && r.Copy-overhead >= sourceFloor*whole[u].Of(r.Lo+r.Lo/2)
		if always {
			n, pays = 1, true
		}
		if !pays {
			continue
		}
		r.Uses[u] = n
		s.limits[u][class] = n
		if !always {
			// One use does not predict a second: registered at the first use, buffers of
			// 64 KB that were never used again took 14 % longer.
			s.limits[u][class] = max(n/speculative, sourceAgain)
		}
		if u != UseOneSided {
			s.least = min(s.least, r.Lo)
		}
	}
}

// frequent returns the number of uses at which a buffer is registered for any Use.
func (s *sources) frequent(size int) uint32 {
	least := uint32(1 << 31)
	for u := range uses {
		if n := s.limits[u][sourceClass(size)]; n > 0 {
			least = min(least, n)
		}
	}
	return least
}

func sourceClass(n int) int { return min(bits.Len(uint(n)), sourceHigh) }

// use counts a use of mem and returns a registration if the device should access it
// directly.
func (d *lane) use(mem []byte, what Use) (rdma.MR, bool) {
	s := d.sources
	limit := s.limits[what][sourceClass(len(mem))]
	if limit == 0 {
		return rdma.MR{}, false
	}
	if g := d.regs.Generation(); g != s.gen {
		s.gen, s.hot = g, [sourceHot]hotBuffer{}
		s.uses.Generation(g)
	}
	addr := rdma.MemOf(mem).Addr()
	hot := &s.hot[addr*goldenRatio>>(64-6)]
	if hot.addr != addr || hot.size != len(mem) {
		if s.seldom(addr, len(mem), limit) {
			s.stats.Copied++
			return rdma.MR{}, false
		}
	}
	mr, err := d.regs.Get(mem, 0)
	if err != nil {
		s.stats.Refused++
		*hot = hotBuffer{}
		s.uses.Forget(addr, len(mem)) // start counting again before the next attempt
		return rdma.MR{}, false
	}
	*hot = hotBuffer{addr, len(mem)}
	s.stats.Direct++
	return mr, true
}

// goldenRatio spreads addresses (Knuth, The Art of Computer Programming 3, 6.4).
const goldenRatio = 0x9E3779B97F4A7C15

// seldom counts a use of a buffer and reports whether it is used too seldom.
func (s *sources) seldom(addr uint64, size int, limit uint32) bool {
	if s.calls++; s.sampling && s.calls%sampleEvery != 0 {
		return true
	}
	if s.calls%sampleFrom == 0 {
		t := s.uses.Stats()
		s.sampling = t.Buffers >= sampleFrom && 5*t.Frequent < t.Buffers // a fifth, as for the growth of the table (T1 5.3.4)
	}
	return s.uses.Note(addr, size) < limit
}

// Source implements p2p.Sources.
func (r registrar) Source(l *p2p.Link, mem []byte, waits bool) (rdma.MR, bool) {
	what := UseGoesOn
	if waits {
		what = UseWaits
	}
	return r.e.lanes[l.Dev].use(mem, what)
}

// reap processes the completion of a send that the device finished when it accepted it.
// It polls for one completion, so a device that has one need not check its sockets.
func (e *Held) reap(l *p2p.Link, x *p2p.Xfer) {
	if l.Attr.EndCost > 0 || e.waits.driver != nil {
		return
	}
	d := e.lanes[l.Dev]
	if n := d.cq.Poll(e.comps[:1]); n > 0 {
		e.work(d, n)
	}
}

// Sources returns the cost estimates for send buffers to a rank, and the counters of all
// messages over the same device. It returns nil where the table is not used.
func (r *Engine) Sources(rank int) ([]SourceRow, SourceStats) {
	e := r.lock()
	defer e.unlock()
	d := e.lanes[e.link(rank).Dev]
	if d.sources == nil {
		return nil, SourceStats{}
	}
	s := d.sources.stats
	s.Table = d.sources.uses.Stats()
	for _, l := range e.links.byRank {
		if e.lanes[l.Dev] == d {
			s.Ring += l.Stats.RingDirect
		}
	}
	return d.sources.rows, s
}
