package ft

import (
	"container/heap"
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/muster-mpi/muster/internal/seeded"
)

var (
	simulateRanks    = flag.Int("simulate.ranks", 100_000, "ranks of the simulation")
	simulateFailures = flag.Int("simulate.failures", 3, "ranks that die in it")
	simulateSeed     = flag.Uint64("simulate.seed", 0, "seed of the simulation; 0: that of the variable SEED, or a new one")
)

// simulation delivers the messages of many ranks in the order of simulated time. A message
// takes 1 to 2 units, a rank learns of a death after 5 to 10.
type simulation struct {
	groups []*Group
	dead   []bool
	events eventHeap
	now    float64
	random *rand.Rand
	sent   []int   // messages of each rank
	last   float64 // when the last rank has decided
}

type simulated struct {
	at     float64
	rank   int32
	from   int32 // sender, or the rank that has died, or -1: the rank itself dies
	number int32 // of the message in its slab; -1: a death
}

type eventHeap struct {
	all  []simulated
	msgs []Message
	free []int32
}

func (h *eventHeap) Len() int           { return len(h.all) }
func (h *eventHeap) Less(i, j int) bool { return h.all[i].at < h.all[j].at }
func (h *eventHeap) Swap(i, j int)      { h.all[i], h.all[j] = h.all[j], h.all[i] }
func (h *eventHeap) Push(x any)         { h.all = append(h.all, x.(simulated)) }
func (h *eventHeap) Pop() any {
	last := h.all[len(h.all)-1]
	h.all = h.all[:len(h.all)-1]
	return last
}

// TestSimulateManyRanks checks agreements of many ranks without failures and with failures
// while they run: all decide the same, and messages and time are bounded. A failure costs at
// most what an agreement costs, if it is that of the root, and its report.
func TestSimulateManyRanks(t *testing.T) {
	seed := *simulateSeed
	if seed == 0 {
		seed = seeded.Seed()
	}
	simulate(t, seed, 0)
	simulate(t, seed, *simulateFailures)
}

func simulate(t *testing.T, seed uint64, failures int) {
	s := &simulation{random: rand.New(rand.NewPCG(seed, 0)), dead: make([]bool, *simulateRanks)}
	s.groups, s.sent = make([]*Group, *simulateRanks), make([]int, *simulateRanks)
	for r := range s.groups {
		s.groups[r] = NewGroup(r, *simulateRanks, Arity)
	}
	for i := range failures {
		rank := s.random.IntN(*simulateRanks)
		if i < 2 { // the upper ranks of the tree are those whose death matters
			rank = i
		}
		heap.Push(&s.events, simulated{s.random.Float64() * 60, int32(rank), -1, -1})
	}
	for r := range s.groups {
		s.groups[r].Enter(^uint64(0), uint64(r), 0)
		s.flush(r)
	}
	s.run()
	s.check(t, seed)
	total, most, depth := 0, 0, 0
	for r := range s.groups {
		total, most = total+s.sent[r], max(most, s.sent[r])
	}
	for n := 1; n < *simulateRanks; n = Arity*n + 1 {
		depth++
	}
	t.Logf("%d ranks, %d failures: %d messages, %.2f for each rank, at most %d, all have decided after %.1f units of time, where a message takes 1 to 2 and the tree is %d deep (seed %d)",
		*simulateRanks, failures, total, float64(total)/float64(*simulateRanks), most, s.last, depth, seed)
	// Without failures a rank sends one message of each of the four passes on each of its
	// branches. A rank that is told of a failure by a message, not yet by a report, may
	// repeat those of the present ballot.
	if limit := 4 * (*simulateRanks - 1) * (1 + 2*failures); total > limit {
		t.Errorf("seed %d: %d messages with %d failures, want at most %d", seed, total, failures, limit)
	}
	if limit := (2*Arity*(1+failures) + 2) * (1 + 2*failures); most > limit {
		t.Errorf("seed %d: a rank sends %d messages with %d failures, want at most %d", seed, most, failures, limit)
	}
	// Four passes, begun again at most once after each failure, which is reported 10 units
	// later at the latest; the last one begins before 60.
	limit := 4 * 2 * float64(depth)
	if failures > 0 {
		limit = 60 + float64(failures)*10 + 2*limit
	}
	if s.last > limit {
		t.Errorf("seed %d: the last rank decides after %.1f units with %d failures, want at most %.1f", seed, s.last, failures, limit)
	}
}

func (s *simulation) flush(rank int) {
	g := s.groups[rank]
	for _, m := range g.Out {
		var n int32
		if f := len(s.events.free); f > 0 {
			n, s.events.free = s.events.free[f-1], s.events.free[:f-1]
			s.events.msgs[n] = m.Message
		} else {
			n = int32(len(s.events.msgs))
			s.events.msgs = append(s.events.msgs, m.Message)
		}
		heap.Push(&s.events, simulated{s.now + 1 + s.random.Float64(), m.To, int32(rank), n})
		s.sent[rank]++
	}
	g.Out = g.Out[:0]
}

func (s *simulation) run() {
	for s.events.Len() > 0 {
		e := heap.Pop(&s.events).(simulated)
		s.now = e.at
		switch {
		case e.number < 0 && e.from < 0:
			s.die(int(e.rank))
			continue
		case e.number < 0:
			s.groups[e.rank].Fail(int(e.from))
		default:
			m := s.events.msgs[e.number]
			s.events.free = append(s.events.free, e.number)
			if s.dead[e.rank] || s.dead[e.from] && s.random.IntN(2) == 0 {
				continue
			}
			_, before := s.groups[e.rank].Decision(1)
			s.groups[e.rank].Receive(int(e.from), m)
			if _, decided := s.groups[e.rank].Decision(1); decided && !before {
				s.last = s.now
			}
		}
		if !s.dead[e.rank] {
			s.flush(int(e.rank))
		}
	}
}

func (s *simulation) die(rank int) {
	if s.dead[rank] {
		return
	}
	s.dead[rank] = true
	for r := range s.groups {
		if !s.dead[r] {
			heap.Push(&s.events, simulated{s.now + 5 + 5*s.random.Float64(), int32(r), int32(rank), -1})
		}
	}
}

func (s *simulation) check(t *testing.T, seed uint64) {
	var first *Value
	for r, g := range s.groups {
		v, decided := g.Decision(1)
		if !decided && !s.dead[r] {
			t.Fatalf("seed %d: rank %d has not decided", seed, r)
		}
		if decided && first == nil {
			first = &v
		}
		if decided && !equal(v, *first) {
			t.Fatalf("seed %d: rank %d decides %+v, another rank %+v", seed, r, v, *first)
		}
	}
}
