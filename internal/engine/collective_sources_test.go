package engine

import (
	"testing"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/sched"
	"github.com/muster-mpi/muster/rdma"
)

// A message of a collective uses the rule of a blocking send only if the caller has
// nothing but sends left to wait for.
func TestCollectiveSendKind(t *testing.T) {
	d := &lane{sources: &sources{collectives: true}}
	e := &Held{setup: setup{lanes: []*lane{d}}}
	m := p2p.New(p2p.Config{}, nil)
	l := &p2p.Link{Attr: &rdma.Attr{MaxSend: 1 << 14, MaxInline: 1 << 14}}
	m.SetUp(l)
	m.SourceFrom(l, 1024)
	for _, c := range []struct {
		size     int
		blocking bool
		received bool
		off      bool
		want     shortKind
	}{
		{1023, true, false, false, sendCopied},
		{1024, true, false, false, sendPart},
		{1024, true, true, false, sendLast},
		{1024, false, true, false, sendPart},
		{1024, true, false, true, sendCopied},
	} {
		d.sources.collectives = !c.off
		co := &Collective{e: e, progress: progress{blocking: c.blocking, awaited: 1}}
		co.noteReceived(&sched.Op{Kind: sched.Send})
		if c.received {
			co.noteReceived(&sched.Op{Kind: sched.Recv})
		}
		if got := co.sendKind(l, c.size); got != c.want {
			t.Errorf("%+v: kind %d", c, got)
		}
	}
}

// Collectives use the table on a device that registers and reports by itself that it has
// finished with a buffer, and otherwise only if the user says so.
func TestCollectivesUseTable(t *testing.T) {
	for _, c := range []struct {
		end      float64
		frequent string
		want     bool
	}{{3000, "", true}, {0, "", false}, {0, FrequentAlways, true}} {
		dev := newPinning()
		dev.attr.EndCost = c.end
		d := dev.lane()
		e := &Engine{}
		e.held.cfg.Frequent = c.frequent
		if err := e.held.openSources(d); err != nil {
			t.Fatal(err)
		}
		if d.sources.collectives != c.want {
			t.Errorf("EndCost %v, %q: collectives use the table: %v", c.end, c.frequent, d.sources.collectives)
		}
	}
}
