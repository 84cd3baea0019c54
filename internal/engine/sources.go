package engine

// Which buffers short messages are sent from (T1 5.3, P1): the shell's part of
// p2p/source.go. A lane whose device wants local memory registered has a table of how
// often each buffer is used, and for each length the number of uses from which it pays to
// register the buffer:
//
//	Source      counts a use; few: copy; enough: the registration cache, which registers
//	            what it does not have
//	Deregister  gives the registration back to the cache when the device is done
//
// The number is n > R/(C−V): R registers, C copies, V counts and looks up, all reportRun
// when the device is opened (sources_measure.go). The buffer is registered at a quarter of
// n, in the hope that it will be used as often again. Where C < 2V, or C−V is under
// a fiftieth of the transfer, and below 128 bytes,
// nobody asks, and nothing is spent.
//
// A send from the user's buffer ends when the device is done with it, a copied one at
// once. So who waits for the end pays for the device's receipt too (Attr.EndCost), and
// gets copies unless there is nothing to wait for. Who goes on gets copies where the
// receipt is more than a round trip away. Puts and gets wait for the peer in any case;
// what they copy through is in stages.go.
// Decision 033 has the reasons.

import (
	"fmt"
	"math/bits"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/regcache"
	"github.com/muster-mpi/muster/rdma"
)

// Use says what a buffer is used for, which decides whether registering it pays.
type Use uint8

const (
	UseWaits  Use = iota // a send whose caller waits for its end
	UseGoesOn            // a send whose caller goes on
	UseOneSided
	uses
)

const (
	sourceLeast = 128 // T1 5.5.1: below, there is nothing to gain
	sourceLow   = 8   // bits.Len of it
	sourceHigh  = 17  // bits.Len of the longest: 64 KiB
	speculative = 4   // a buffer is registered after this part of the uses that would pay
	sourceAgain = 2   // and not before it was used again
	// sourceMargin is how many times what it costs the copy must be worth, and sourceFloor which
	// part of the transfer the gain must be: less cannot be told from what two worlds that do the
	// same differ by (decision 033).
	sourceMargin = 2
	sourceFloor  = 0.02
	sourceHot    = 64
	sampleFrom   = 256 // buffers in the table, for it to tell anything
	sampleEvery  = 8   // of how many messages one is counted then

	// FrequentAlways registers at the first use, FrequentNever never.
	FrequentAlways, FrequentNever = "always", "never"
)

// SourceRow is what is thought of messages of Lo to Hi bytes, in nanoseconds.
type SourceRow struct {
	Lo, Hi         int
	Register, Copy float64
	Lookup         [uses]float64
	// Uses is the number of uses from which registering pays, for each Use; 0: never.
	Uses [uses]uint32
}

// sources are the buffers of a lane.
type sources struct {
	uses   *regcache.Uses
	rows   []SourceRow
	limits [uses][sourceHigh + 1]uint32 // by bits.Len of the length; 0: never
	least  int                          // the shortest length for which a send asks; p2p.MaxSize: none
	stats  SourceStats

	// hot are buffers that were used from where they are of late: the table, which may be
	// far from the processor, is not asked for them. It ends with the generation.
	hot [sourceHot]hotBuffer
	gen uint32
	// sampling says that the table holds mostly buffers that are not used again: then it is
	// asked for few messages, so that a program without reuse pays next to nothing.
	sampling bool
	calls    uint32
}

type hotBuffer struct {
	addr uint64
	size int
}

// SourceStats counts what was decided.
type SourceStats struct {
	Direct  uint64 // messages, puts and gets that were moved from or to where they are
	Copied  uint64 // of buffers that are not used often enough
	Refused uint64 // buffers that are, but that the device could not register
	Table   regcache.UsesStats
}

// openSources decides for a lane whether buffers are counted.
func (e *Engine) openSources(d *lane) error {
	if !d.attr.LocalKeys || !d.attr.Pins || e.cfg.Frequent == FrequentNever || e.cfg.RegisterCache < 0 {
		return nil
	}
	rows, err := measureSources(d.dev, d.regs)
	if err != nil {
		return fmt.Errorf("what registering costs on %s: %w", d.attr.Name, err)
	}
	s := &sources{rows: rows, least: p2p.MaxSize}
	for i := range rows {
		s.settle(&rows[i], d.attr, e.cfg.Frequent == FrequentAlways)
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
		end[UseGoesOn] = a.EndCost // too far away to be hidden by what the caller does meanwhile
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
			// One use says nothing about a second: registered at the first, 64 KB that were never
			// used again took 14 % longer.
			s.limits[u][class] = max(n/speculative, sourceAgain)
		}
		if u != UseOneSided {
			s.least = min(s.least, r.Lo)
		}
	}
}

// frequent is the number of uses at which a buffer is registered, whatever for.
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

// use counts a use of mem and gives a registration if it should be used from where it is.
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
		s.uses.Forget(addr, len(mem)) // it has to earn it again before it is tried again
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

// Source is for the machine.
func (r registrar) Source(l *p2p.Link, mem []byte, waits bool) (rdma.MR, bool) {
	what := UseGoesOn
	if waits {
		what = UseWaits
	}
	return r.e.lanes[l.Dev].use(mem, what)
}

// sendShort sends a message that may be sent from where it is. sent says that it is over;
// else x is the operation, nil if another way must serve.
func (e *Engine) sendShort(l *p2p.Link, c *Comm, tag int32, buf []byte, waits bool) (x *p2p.Xfer, sent bool) {
	wr, x := e.m.SendShort(l, c.Ctx, c.Rank, tag, buf, waits)
	if wr == nil {
		return nil, false
	}
	if l.Open && len(l.Wait) == 0 {
		if n, _ := l.QP.PostSend(wr[:]); n == 1 {
			if x != nil {
				e.reap(l, x)
			}
			return x, x == nil
		}
	}
	e.post(l, wr[:])
	switch {
	case x != nil:
		return x, false
	case len(l.Wait) == 0 && l.Err == nil:
		return nil, true
	}
	return e.adopt(l), false
}

// reap looks for the end of a send that the device was done with when it took it. One
// completion is asked for, so that a device that has it need not look at its sockets.
func (e *Engine) reap(l *p2p.Link, x *p2p.Xfer) {
	if l.Attr.EndCost > 0 || !e.undriven() {
		return
	}
	d := e.lanes[l.Dev]
	if n := d.cq.Poll(e.comps[:1]); n > 0 {
		e.work(d, n)
	}
}

// Sources is what is thought of the buffers of messages to a rank, and what was decided
// for all messages over the same device; nil where nothing is to be gained.
func (e *Engine) Sources(rank int) ([]SourceRow, SourceStats) {
	e.lock()
	defer e.unlock()
	d := e.lanes[e.link(rank).Dev]
	if d.sources == nil {
		return nil, SourceStats{}
	}
	s := d.sources.stats
	s.Table = d.sources.uses.Stats()
	return d.sources.rows, s
}
