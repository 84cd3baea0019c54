package sim

import (
	"math"
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/sched"
)

func shape(kind coll.Kind, ranks, bytes int, nodes *coll.Topology) coll.Shape {
	s := coll.Shape{Kind: kind, Size: ranks, Elem: 8, Commutes: true, Nodes: nodes}
	switch kind {
	case coll.Barrier:
	case coll.Gather, coll.Allgather:
		s.Recv.Each = bytes
	case coll.Scatter, coll.ReduceScatter:
		s.Send.Each = bytes
	case coll.Alltoall:
		s.Send.Each, s.Recv.Each = bytes, bytes
	default:
		s.Bytes = bytes
	}
	return s
}

func simulate(t *testing.T, c Config) *Result {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	x, err := s.Run()
	if err != nil {
		t.Fatalf("%s by %s: %v", c.Calls[0].Shape.Kind, c.Calls[0].Algorithm.Name, err)
	}
	return x
}

func find(t *testing.T, kind coll.Kind, name string) *coll.Algorithm {
	t.Helper()
	a, err := coll.Find(kind, name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// plain is a machine whose times can be computed by hand.
func plain() *Machine {
	return &Machine{Nodes: 1, Rails: 1, Cores: 64,
		Near: Level{L: 100, O: Curve{{0, 10}, {1000, 1010}}, Eager: 4096},
		Far:  Level{L: 1000, O: Curve{{0, 50}}, Gap: 5, G: 1, Eager: 4096}}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

// TestTimes compares simulated times with those computed by hand.
func TestTimes(t *testing.T) {
	two := Layout(2, 2, 1)
	for _, c := range []struct {
		what    string
		nodes   *coll.Topology
		bytes   int
		change  func(*Config)
		micros  float64
		control int64
	}{
		{"o + L + o within a node", nil, 8, nil, 0.018 + 0.100 + 0.018, 0},
		{"o has the copies of a node", nil, 504, nil, 0.514 + 0.100 + 0.514, 0},
		{"o + 8·G + L + o between nodes", two, 8, nil, 0.050 + 0.008 + 1.000 + 0.050, 0},
		{"o + n·G + L + o between nodes", two, 2000, nil, 0.050 + 2.000 + 1.000 + 0.050, 0},
		{"a long message is announced and asked for", two, 8000, nil, 5*0.050 + 3*1.000 + 2*0.005 + 8.000, 2},
		{"a slow node", two, 8, func(c *Config) { c.Faults = Faults{SlowNode: 2, SlowFactor: 3} }, 0.050 + 0.008 + 1.000 + 0.150, 0},
		{"a late receiver", two, 8, func(c *Config) { c.Arrive = func(r int) float64 { return float64(r) * 5000 } }, 0.050, 0},
		{"a message longer than Stripe uses both rails", two, 2000, func(c *Config) { c.Machine.Rails, c.Machine.Stripe = 2, 1000 }, 0.050 + 1.000 + 1.000 + 0.050, 0},
		{"and one if the other is lost", two, 2000, func(c *Config) {
			c.Machine.Rails, c.Machine.Stripe = 2, 1000
			c.Faults = Faults{LostNode: 1, LostRail: 1}
		}, 0.050 + 2.000 + 1.000 + 0.050, 0},
	} {
		a := find(t, coll.Bcast, "binomial")
		config := Config{Machine: plain(), Calls: []Call{{Algorithm: a, Shape: shape(coll.Bcast, 2, c.bytes, c.nodes)}}}
		if c.change != nil {
			c.change(&config)
		}
		x := simulate(t, config)
		if !near(x.Last, c.micros) || x.Stats.Messages() != 1 || x.Stats.Control != c.control {
			t.Errorf("%s: %v µs, want %v; %+v, want 1 message and %d control", c.what, x.Last, c.micros, x.Stats, c.control)
		}
	}
}

// TestCoresAreShared checks that ranks beyond the cores wait for a core.
func TestCoresAreShared(t *testing.T) {
	m := plain()
	m.Far.O = Curve{{0, 1000}}
	a := find(t, coll.Barrier, "dissemination")
	c := Config{Machine: m, Calls: []Call{{Algorithm: a, Shape: shape(coll.Barrier, 16, 0, Layout(16, 4, 1))}}}
	own := simulate(t, c).Last
	m.Cores, m.NodesPerHost = 2, 4
	shared := simulate(t, c)
	work := 2 * float64(shared.Stats.Far) * 1.0 / 2 // µs: each end of a message, on two cores
	if shared.Last < work || shared.Last < 2*own {
		t.Errorf("16 ranks on 2 cores take %v µs; they have %v µs of work for each core, and take %v on cores of their own", shared.Last, work, own)
	}
}

// TestRailsAreShared checks that the messages of a node wait for its rail.
func TestRailsAreShared(t *testing.T) {
	a := find(t, coll.Alltoall, "pairwise")
	x := simulate(t, Config{Machine: plain(), Calls: []Call{{Algorithm: a, Params: a.Default(), Shape: shape(coll.Alltoall, 8, 4000, Layout(8, 2, 1))}}})
	wire := 4. * 4 * 4 // µs: four ranks send 4000 bytes to each of four others
	if x.Last < wire {
		t.Errorf("%v µs, but the rail of a node is busy for %v", x.Last, wire)
	}
	if len(x.HotRails) != 4 || !near(x.HotRails[0].Busy, wire) {
		t.Errorf("the hottest rails are %+v; want four, busy for %v µs each", x.HotRails, wire)
	}
}

// TestMemoryIsShared checks that ranks that post all their messages at once do not keep
// the others from copying.
func TestMemoryIsShared(t *testing.T) {
	m := plain()
	m.Memory = 0.01
	times := map[string]float64{}
	for _, name := range []string{"direct", "pairwise"} {
		a := find(t, coll.Alltoall, name)
		times[name] = simulate(t, Config{Machine: m, Calls: []Call{{Algorithm: a, Params: a.Default(), Shape: shape(coll.Alltoall, 32, 4000, nil)}}}).Last
	}
	if own := 31 * 2 * 4.01; times["direct"] < own || times["direct"] > 1.5*own || times["pairwise"] > 2*own {
		t.Errorf("%v µs; a rank copies for %v µs, and the memory has room for all of them", times, own)
	}
}

// TestEveryAlgorithm runs all algorithms: they end, and have the messages of their graphs.
func TestEveryAlgorithm(t *testing.T) {
	machine := Default()
	machine.Cores = 3
	for _, nodes := range []*coll.Topology{nil, Layout(13, 4, 2)} {
		for _, a := range coll.Algorithms() {
			if a.Kind == coll.Neighbors {
				continue
			}
			for _, bytes := range []int{8, 104, 80 << 10} {
				s := shape(a.Kind, 13, bytes, nodes)
				if ok, _ := coll.Applicable(&a, &s); !ok {
					continue
				}
				want := totals(t, &a, s)
				x := simulate(t, Config{Machine: machine, Path: true, Arrive: Arrival{within: 1e6}.Of(13), Calls: []Call{{Algorithm: &a, Params: a.Default(), Shape: s}}})
				if x.Stats.Messages() != int64(want.Messages) || x.Stats.NearBytes+x.Stats.FarBytes != int64(want.Bytes) {
					t.Errorf("%s by %s, %d bytes: %+v, want %d messages and %d bytes", a.Kind, a.Name, bytes, x.Stats, want.Messages, want.Bytes)
				}
				if x.First > x.Mean || x.Mean > x.Last {
					t.Errorf("%s by %s: first %v, mean %v, last %v", a.Kind, a.Name, x.First, x.Mean, x.Last)
				}
				checkPath(t, x)
			}
		}
	}
}

func totals(t *testing.T, a *coll.Algorithm, s coll.Shape) sched.Totals {
	t.Helper()
	var b sched.Builder
	var graphs []*sched.Graph
	for r := range s.Size {
		s.Rank = r
		g, err := a.Graph(&b, &s, a.Default())
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	all, err := sched.Total(graphs)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkPath checks that time does not go back on the critical path, and that a change of
// rank is a message.
func checkPath(t *testing.T, x *Result) {
	t.Helper()
	for i := 1; i < len(x.Path); i++ {
		a, b := x.Path[i-1], x.Path[i]
		if a.End > b.End || a.Rank != b.Rank && (a.What != "send" || b.What != "recv" && b.What != "send") {
			t.Errorf("the critical path goes from %+v to %+v", a, b)
			return
		}
	}
}

// TestSeveralCalls checks that a rank enters the next call when it leaves one.
func TestSeveralCalls(t *testing.T) {
	barrier := find(t, coll.Barrier, "dissemination")
	one := Call{Algorithm: barrier, Shape: shape(coll.Barrier, 4, 0, nil)}
	x := simulate(t, Config{Machine: plain(), Calls: []Call{one}})
	gap := one
	gap.Before = 7000
	y := simulate(t, Config{Machine: plain(), Calls: []Call{one, gap, one}})
	if !near(y.Last, 3*x.Last+7) || y.Stats.Messages() != 3*x.Stats.Messages() {
		t.Errorf("three barriers and 7 µs take %v µs, %d messages; one takes %v, %d", y.Last, y.Stats.Messages(), x.Last, x.Stats.Messages())
	}
	if x.Last != x.First {
		t.Errorf("ranks leave a barrier between %v and %v µs; they arrive together, and have the same messages", x.First, x.Last)
	}
}
