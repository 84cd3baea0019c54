package ft

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
)

// The explorer of agreements in shared memory. Its events are: a rank enters an agreement, a
// rank looks at the memory, a rank dies, a rank learns of the next death in their order. It
// makes the checks of the explorer of messages (explore_test.go). A look is one event, and
// one that concludes nothing is none: what it reads does not change any more, so that it is
// the same as if the rank read all of it when it concludes.

type sharedExploration struct {
	n, failures, rounds int
	// early makes a rank skip an empty cell whose rank has died, although it does not know
	// the death yet: an error that the explorer must find.
	early  bool
	seed   maphash.Seed
	seen   map[uint64]bool
	states int
	ends   int
	path   []string
}

// sharedWorld is a state. Deaths are in their order.
type sharedWorld struct {
	ranks  []sharedRank
	cells  [][2]Cell
	deaths []int32
}

type sharedRank struct {
	s       Shared
	entered int
	known   Set     // failures known when it entered the last agreement
	decided []Value // by agreement
}

// sharedCells is the memory of one rank of a world.
type sharedCells struct {
	w  *sharedWorld
	me int
}

func (c sharedCells) Load(rank int, round uint64) (Cell, bool) {
	cell := c.w.cells[rank][round%2]
	return cell, cell.Round == round
}

func (c sharedCells) Store(cell Cell) { c.w.cells[c.me][cell.Round%2] = cell }

func TestExploreShared(t *testing.T) {
	cases := []sharedExploration{
		{n: 1, failures: 1, rounds: 2}, {n: 2, failures: 2, rounds: 3}, {n: 3, failures: 2, rounds: 3}, {n: 4, failures: 2, rounds: 1},
	}
	if *exploreFull {
		cases = append(cases, sharedExploration{n: 4, failures: 2, rounds: 2}, sharedExploration{n: 4, failures: 3, rounds: 1}, sharedExploration{n: 5, failures: 2, rounds: 1}, sharedExploration{n: 5, failures: 2, rounds: 2}, sharedExploration{n: 5, failures: 4, rounds: 1})
	}
	for _, x := range cases {
		if err := x.run(); err != nil {
			t.Fatalf("%d ranks, %d failures, %d agreements: %v\nafter\n%s", x.n, x.failures, x.rounds, err, strings.Join(x.path, "\n"))
		}
		t.Logf("shared memory: %d ranks, up to %d failures, %d agreements: %d states, %d ends, no violation", x.n, x.failures, x.rounds, x.states, x.ends)
	}
	x := sharedExploration{n: 3, failures: 1, rounds: 1, early: true}
	if err := x.run(); err == nil {
		t.Error("no violation found although ranks skip cells that may still be written")
	}
}

func (x *sharedExploration) run() error {
	x.seed, x.seen = maphash.MakeSeed(), map[uint64]bool{}
	w := &sharedWorld{ranks: make([]sharedRank, x.n), cells: make([][2]Cell, x.n)}
	for r := range w.ranks {
		w.ranks[r].s = *NewShared(x.n, nil)
	}
	return x.visit(w)
}

func (w *sharedWorld) clone() *sharedWorld {
	return &sharedWorld{slices.Clone(w.ranks), slices.Clone(w.cells), slices.Clone(w.deaths)}
}

func (x *sharedExploration) visit(w *sharedWorld) error {
	h := x.hash(w)
	if x.seen[h] {
		return nil
	}
	x.seen[h] = true
	x.states++
	enabled := false
	next := func(rank int, what string, do func(r *sharedRank, s *Shared)) error {
		v := w.clone()
		r := &v.ranks[rank]
		r.s.failed, r.decided = slices.Clone(r.s.failed), slices.Clone(r.decided)
		r.s.memory, r.s.cells, r.s.next = sharedCells{v, rank}, make([]Cell, x.n), 0
		do(r, &r.s)
		if what == "looks" && r.s.waiting && r.s.mine.Round == w.ranks[rank].s.mine.Round {
			return nil
		}
		enabled = true
		x.path = append(x.path, fmt.Sprintf("%d %s", rank, what))
		err := x.check(v, rank)
		if err == nil {
			err = x.visit(v)
		}
		if err == nil {
			x.path = x.path[:len(x.path)-1]
		}
		return err
	}
	look := func(r *sharedRank, s *Shared) {
		if x.early {
			s.failed = slices.Clone(w.deaths)
			if len(s.failed) == 0 {
				s.failed = append(s.failed, int32(x.n)-1) // a suspicion
			}
		}
		if s.Look() && len(r.decided) < r.entered {
			v, _ := s.Decision()
			r.decided = append(r.decided, v)
		}
	}
	for i := range w.ranks {
		if slices.Contains(w.deaths, int32(i)) {
			continue
		}
		r := &w.ranks[i]
		if r.entered == len(r.decided) && r.entered < x.rounds {
			if err := next(i, "enters", func(r *sharedRank, s *Shared) {
				r.known, r.entered = Set(s.failed).sorted(), r.entered+1
				s.Enter(^(uint64(1) << i), 1<<i)
			}); err != nil {
				return err
			}
		}
		if r.s.waiting {
			if err := next(i, "looks", look); err != nil {
				return err
			}
		}
		if known := len(r.s.failed); known < len(w.deaths) {
			if err := next(i, fmt.Sprintf("learns of the death of %d", w.deaths[known]), func(_ *sharedRank, s *Shared) { s.Fail(int(w.deaths[known])) }); err != nil {
				return err
			}
		}
	}
	if !enabled {
		x.ends++
		for i := range w.ranks {
			if len(w.ranks[i].decided) < x.rounds && !slices.Contains(w.deaths, int32(i)) {
				return fmt.Errorf("rank %d waits for ever", i)
			}
		}
	}
	if len(w.deaths) < x.failures {
		for i := range w.ranks {
			if slices.Contains(w.deaths, int32(i)) {
				continue
			}
			v := w.clone()
			v.deaths = append(v.deaths, int32(i))
			x.path = append(x.path, fmt.Sprintf("%d dies", i))
			if err := x.visit(v); err != nil {
				return err
			}
			x.path = x.path[:len(x.path)-1]
		}
	}
	return nil
}

// check checks the last decision of a rank against those of all others.
func (x *sharedExploration) check(w *sharedWorld, rank int) error {
	r := &w.ranks[rank]
	if len(r.decided) == 0 {
		return nil
	}
	k := len(r.decided) - 1
	v := r.decided[k]
	for other := range w.ranks {
		o := &w.ranks[other]
		if k < len(o.decided) && !equal(v, o.decided[k]) {
			return fmt.Errorf("rank %d decides %+v in agreement %d, rank %d %+v", rank, v, k, other, o.decided[k])
		}
		covered := v.Flag&(1<<other) == 0
		if covered == v.Failed.Has(int32(other)) || covered && (o.entered <= k || v.Number < 1<<other) {
			return fmt.Errorf("the decision %+v of rank %d covers rank %d: %v", v, rank, other, covered)
		}
	}
	for _, f := range v.Failed {
		if !slices.Contains(w.deaths, f) {
			return fmt.Errorf("the decision %+v of rank %d has ranks that live: %v are dead", v, rank, w.deaths)
		}
	}
	if k == r.entered-1 && len(v.Failed.Union(r.known)) != len(v.Failed) {
		return fmt.Errorf("the decision %+v of rank %d lacks a failure that it knew: %v", v, rank, r.known)
	}
	return nil
}

func (x *sharedExploration) hash(w *sharedWorld) uint64 {
	var b []byte
	for i := range w.ranks {
		r := &w.ranks[i]
		b = appendSet(append(b, byte(r.entered)), r.known)
		for _, v := range r.decided {
			b = appendValue(b, v)
		}
		b = append(b, 255)
		b = appendSet(b, w.deaths)
		if slices.Contains(w.deaths, int32(i)) {
			continue // it takes no further step
		}
		b = append(b, byte(r.s.mine.Round), byte(r.s.mine.Failures), flags(r.s.waiting), byte(len(r.s.failed)))
	}
	for _, pair := range w.cells {
		for _, c := range pair {
			b = append(b, byte(c.Round), byte(c.Failures))
		}
	}
	return maphash.Bytes(x.seed, b)
}

// TestSharedAllocatesNothing checks the agreement of ranks of which none has failed.
func TestSharedAllocatesNothing(t *testing.T) {
	w := &sharedWorld{cells: make([][2]Cell, 16)}
	ranks := make([]*Shared, len(w.cells))
	for r := range ranks {
		ranks[r] = NewShared(len(ranks), sharedCells{w, r})
	}
	if n := testing.AllocsPerRun(100, func() {
		for r, s := range ranks {
			if s.Enter(uint64(1)<<63|1<<r, uint64(r)); s.Look() != (r == len(ranks)-1) {
				t.Errorf("rank %d has decided: %v", r, r < len(ranks)-1)
			}
		}
		for r, s := range ranks {
			s.Look()
			v, decided := s.Decision()
			if !decided || v.Flag != 1<<63 || v.Number != uint64(len(ranks)-1) || s.Last() != (r == len(ranks)-1) {
				t.Errorf("rank %d has decided %+v: %v; it was the last to contribute: %v", r, v, decided, s.Last())
			}
		}
	}); n != 0 {
		t.Errorf("an agreement of %d ranks allocates %v times", len(ranks), n)
	}
}
