package ft

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
)

// The explorer of agreements in shared memory. Its events are: a rank enters an agreement,
// looks at the memory, goes to sleep, gets a note that wakes it, dies, learns of the next
// death in their order. It makes the checks of the explorer of messages (explore_test.go).
//
// A rank that is awake looks whenever it wants. One that sleeps looks once after each event
// of its own: after it has lain down, after a note, after it has learned of a death. Notes
// of a rank that dies are lost. So a rank waits for ever if it sleeps and nothing can happen.
//
// A look at one round is one event. What it reads does not change any more, so it is the
// same as if the rank read all of it at the end.

type sharedExploration struct {
	n, failures, rounds int
	plant               planted
	seed                maphash.Seed
	seen                map[uint64]bool
	states              int
	ends                int
	path                []string
}

// planted is an error that the explorer must find.
type planted string

const (
	skipsEarly        planted = "a rank skips an empty cell whose rank has died, although it does not know the death yet"
	onlyLastWakes     planted = "a rank wakes others only if it decides as soon as it has contributed"
	onlyDecisionWakes planted = "a rank that begins the next round wakes nobody in the one that it leaves"
	sleepsBlindly     planted = "a rank sleeps without a look after it has recorded so"
	sleepsOnce        planted = "a rank that sleeps does not record that it sleeps in the next round too"
)

// sharedWorld is a state. Deaths are in their order.
type sharedWorld struct {
	ranks  []sharedRank
	cells  [][2]Cell
	sleeps []uint64 // by rank: the round in which it sleeps
	deaths []int32
}

type sharedRank struct {
	s       Shared
	due     bool // it looks, even if it sleeps
	notes   Set  // ranks that have woken it, whose notes are under way
	entered int
	known   Set     // failures known when it entered the last agreement
	decided []Value // by agreement
}

// sharedCells is the memory of one rank of a world.
type sharedCells struct {
	w     *sharedWorld
	me    int
	plant planted
}

func (c sharedCells) Load(rank int, round uint64) (Cell, bool) {
	cell := c.w.cells[rank][round%2]
	return cell, cell.Round == round
}

func (c sharedCells) Store(cell Cell) { c.w.cells[c.me][cell.Round%2] = cell }

func (c sharedCells) Sleep(round uint64) {
	if c.plant != sleepsOnce || c.w.sleeps[c.me] == 0 {
		c.w.sleeps[c.me] = round
	}
}

func (c sharedCells) Wake(rank int, round uint64) {
	if s := &c.w.ranks[c.me].s; rank == c.me || c.w.sleeps[rank] != round || c.plant == onlyLastWakes && (s.waiting || !s.last) || c.plant == onlyDecisionWakes && s.waiting {
		return
	}
	c.w.sleeps[rank] = 0
	r := &c.w.ranks[rank]
	r.notes = r.notes.Add(int32(c.me))
}

func TestExploreShared(t *testing.T) {
	cases := []sharedExploration{
		{n: 1, failures: 1, rounds: 2}, {n: 2, failures: 2, rounds: 3}, {n: 3, failures: 2, rounds: 2}, {n: 4, failures: 2, rounds: 1},
	}
	if *exploreFull {
		cases = append(cases, sharedExploration{n: 3, failures: 2, rounds: 3}, sharedExploration{n: 4, failures: 1, rounds: 2},
			sharedExploration{n: 4, failures: 3, rounds: 1}, sharedExploration{n: 5, failures: 1, rounds: 1})
	}
	for _, x := range cases {
		if err := x.run(); err != nil {
			t.Fatalf("%d ranks, %d failures, %d agreements: %v\nafter\n%s", x.n, x.failures, x.rounds, err, strings.Join(x.path, "\n"))
		}
		t.Logf("shared memory: %d ranks, up to %d failures, %d agreements: %d states, %d ends, no violation", x.n, x.failures, x.rounds, x.states, x.ends)
	}
}

// TestExplorerFindsPlantedErrors checks that the explorer finds errors in the protocol.
func TestExplorerFindsPlantedErrors(t *testing.T) {
	for _, x := range []sharedExploration{
		{n: 3, failures: 1, rounds: 1, plant: skipsEarly},
		{n: 3, failures: 1, rounds: 1, plant: onlyLastWakes},
		{n: 2, rounds: 1, plant: sleepsBlindly},
		{n: 4, failures: 2, rounds: 1, plant: onlyDecisionWakes},
		{n: 4, failures: 2, rounds: 1, plant: sleepsOnce},
	} {
		err := x.run()
		if err == nil {
			t.Errorf("no violation found in %d states although %s", x.states, x.plant)
			continue
		}
		t.Logf("%s: %v after\n%s", x.plant, err, strings.Join(x.path, "\n"))
	}
}

func (x *sharedExploration) run() error {
	x.seed, x.seen = maphash.MakeSeed(), map[uint64]bool{}
	w := &sharedWorld{ranks: make([]sharedRank, x.n), cells: make([][2]Cell, x.n), sleeps: make([]uint64, x.n)}
	for r := range w.ranks {
		w.ranks[r].s = *NewShared(x.n, nil)
	}
	return x.visit(w)
}

func (w *sharedWorld) clone() *sharedWorld {
	return &sharedWorld{slices.Clone(w.ranks), slices.Clone(w.cells), slices.Clone(w.sleeps), slices.Clone(w.deaths)}
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
		r.s.memory, r.s.cells, r.s.next = sharedCells{v, rank, x.plant}, make([]Cell, x.n), 0
		do(r, &r.s)
		if before := &w.ranks[rank].s; what == "looks" && !w.ranks[rank].due && r.s.waiting && r.s.mine.Round == before.mine.Round && r.s.last == before.last {
			return nil // it is awake, and this changes nothing
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
	for i := range w.ranks {
		if slices.Contains(w.deaths, int32(i)) {
			continue
		}
		r := &w.ranks[i]
		if r.entered == len(r.decided) && r.entered < x.rounds {
			if err := next(i, "enters", func(r *sharedRank, s *Shared) {
				r.known, r.entered, r.due = Set(s.failed).sort(), r.entered+1, true
				s.Enter(^(uint64(1) << i), 1<<i)
			}); err != nil {
				return err
			}
		}
		if r.s.waiting && (r.due || !r.s.asleep) {
			if err := next(i, "looks", func(r *sharedRank, s *Shared) { x.look(w, r, s) }); err != nil {
				return err
			}
		}
		if r.s.waiting && !r.due && !r.s.asleep {
			if err := next(i, "goes to sleep", func(r *sharedRank, s *Shared) {
				s.Sleep()
				r.due = x.plant != sleepsBlindly
			}); err != nil {
				return err
			}
		}
		for _, from := range r.notes {
			if err := next(i, fmt.Sprintf("is woken by %d", from), func(r *sharedRank, s *Shared) {
				r.notes, r.due = r.notes.without(from), s.waiting
			}); err != nil {
				return err
			}
		}
		if known := len(r.s.failed); known < len(w.deaths) {
			if err := next(i, fmt.Sprintf("learns of the death of %d", w.deaths[known]), func(r *sharedRank, s *Shared) {
				s.Fail(int(w.deaths[known]))
				r.due = s.waiting
			}); err != nil {
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
			for r := range v.ranks {
				v.ranks[r].notes = v.ranks[r].notes.without(int32(i))
			}
			x.path = append(x.path, fmt.Sprintf("%d dies", i))
			if err := x.visit(v); err != nil {
				return err
			}
			x.path = x.path[:len(x.path)-1]
		}
	}
	return nil
}

func (x *sharedExploration) look(w *sharedWorld, r *sharedRank, s *Shared) {
	if x.plant == skipsEarly {
		s.failed = slices.Clone(w.deaths)
		if len(s.failed) == 0 {
			s.failed = append(s.failed, int32(x.n)-1) // a suspicion
		}
	}
	r.due = s.lookOnce() && s.waiting
	if v, decided := s.Decision(); decided && len(r.decided) < r.entered {
		r.decided = append(r.decided, v)
	}
}

func (s Set) without(rank int32) Set {
	return slices.DeleteFunc(slices.Clone(s), func(r int32) bool { return r == rank })
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
		b = append(b, byte(r.s.mine.Round), byte(r.s.mine.Failures), flags(r.s.waiting, r.s.asleep, r.s.last, r.due), byte(len(r.s.failed)), byte(w.sleeps[i]))
		b = appendSet(b, r.notes)
	}
	for _, pair := range w.cells {
		for _, c := range pair {
			b = append(b, byte(c.Round), byte(c.Failures))
		}
	}
	return maphash.Bytes(x.seed, b)
}

// TestSharedAllocatesNothing checks the agreement of ranks of which none has failed. Only the
// last one wakes others.
func TestSharedAllocatesNothing(t *testing.T) {
	const n = 16
	w := &sharedWorld{ranks: make([]sharedRank, n), cells: make([][2]Cell, n), sleeps: make([]uint64, n)}
	ranks := make([]*Shared, n)
	woken := 0
	for r := range ranks {
		ranks[r] = NewShared(n, countedCells{sharedCells{w: w, me: r}, &woken})
	}
	if allocs := testing.AllocsPerRun(100, func() {
		for r, s := range ranks {
			if s.Enter(uint64(1)<<63|1<<r, uint64(r)); s.Look() != (r == n-1) || woken != r/(n-1)*n {
				t.Errorf("rank %d has decided: %v; it has tried to wake %d ranks", r, r < n-1, woken)
			}
		}
		for r, s := range ranks {
			s.Look()
			if v, decided := s.Decision(); !decided || v.Flag != 1<<63 || v.Number != n-1 || woken != n {
				t.Errorf("rank %d has decided %+v: %v; %d wakes", r, v, decided, woken)
			}
		}
		woken = 0
	}); allocs != 0 {
		t.Errorf("an agreement of %d ranks allocates %v times", n, allocs)
	}
}

// countedCells counts how often ranks look whether another one sleeps.
type countedCells struct {
	sharedCells
	woken *int
}

func (c countedCells) Wake(int, uint64) { *c.woken++ }
