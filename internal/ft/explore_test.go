package ft

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
)

// The explorer runs every order of the events of a small job: a rank enters the agreement,
// a message arrives (messages of a pair in order), a rank dies and any of its messages
// under way are lost (the last ones of each pair), a rank learns of a death. States that
// were reached before are not continued. It checks in every state, also of ranks that are
// dead now, that
//
//	agreement    all decisions are equal
//	validity     the decision covers every rank that is not in its set of failed ranks, and
//	             no rank that has not entered; that set has only dead ranks, and all whose
//	             death the deciding rank knew when it entered
//	termination  no rank alive waits if nothing can happen any more, and no sequence of
//	             events repeats itself

var exploreFull = flag.Bool("explore.full", false, "explore five ranks and two failures, and two agreements in a row")

type exploration struct {
	n, arity, failures, rounds int
	lies                       bool // ranks may be reported as failed while they live
	seed                       maphash.Seed
	seen                       map[uint64]bool // true: on the path that is being explored
	states, ends               int
	path                       []string
}

// world is a state of the job. Its groups are not changed, but replaced.
type world struct {
	ranks    []exploredRank
	channels [][]Message // n·from + to
	dead     Set
}

type exploredRank struct {
	g     *Group
	hash  uint64
	known Set // failures known when it entered
}

func TestExplore(t *testing.T) {
	cases := []exploration{
		{n: 1, arity: 2, failures: 1, rounds: 2},
		{n: 2, arity: 2, failures: 2, rounds: 2},
		{n: 3, arity: 2, failures: 2, rounds: 1},
		{n: 3, arity: 1, failures: 1, rounds: 2},
		{n: 4, arity: 1, failures: 2, rounds: 1},
		{n: 4, arity: 2, failures: 2, rounds: 1},
	}
	if *exploreFull {
		cases = append(cases,
			exploration{n: 3, arity: 2, failures: 2, rounds: 2},
			exploration{n: 5, arity: 2, failures: 1, rounds: 1},
			exploration{n: 5, arity: 4, failures: 2, rounds: 1},
			exploration{n: 5, arity: 2, failures: 2, rounds: 1})
	}
	for _, x := range cases {
		if err := x.run(); err != nil {
			t.Fatalf("%d ranks, arity %d, %d failures, %d agreements: %v\nafter\n%s", x.n, x.arity, x.failures, x.rounds, err, strings.Join(x.path, "\n"))
		}
		t.Logf("%d ranks, arity %d, up to %d failures, %d agreements: %d states, %d ends, no violation", x.n, x.arity, x.failures, x.rounds, x.states, x.ends)
	}
}

// TestExplorerFindsViolations checks that the explorer sees what goes wrong if ranks are
// reported as failed that live.
func TestExplorerFindsViolations(t *testing.T) {
	x := exploration{n: 3, arity: 2, rounds: 1, lies: true}
	if err := x.run(); err == nil {
		t.Error("no violation found although failures are reported that never happened")
	}
}

func (x *exploration) run() error {
	x.seed, x.seen = maphash.MakeSeed(), map[uint64]bool{}
	w := world{ranks: make([]exploredRank, x.n), channels: make([][]Message, x.n*x.n)}
	for r := range w.ranks {
		w.ranks[r].g = NewGroup(r, x.n, x.arity)
		w.ranks[r].hash = x.hash(&w.ranks[r])
	}
	return x.visit(&w)
}

func (x *exploration) visit(w *world) error {
	h := x.state(w)
	if on, before := x.seen[h]; before {
		if on {
			return fmt.Errorf("the same state repeats")
		}
		return nil
	}
	x.seen[h] = true
	x.states++
	enabled := false
	next := func(what string, args []any, rank int, do func(w *world, g *Group)) error {
		enabled = true
		x.path = append(x.path, fmt.Sprintf(what, args...))
		v := &world{slices.Clone(w.ranks), slices.Clone(w.channels), w.dead}
		r := &v.ranks[rank]
		r.g = clone(r.g)
		do(v, r.g)
		for _, s := range r.g.Out {
			if c := x.n*rank + int(s.To); !v.dead.Has(s.To) {
				v.channels[c] = append(slices.Clone(v.channels[c]), s.Message)
			}
		}
		r.g.Out = nil
		r.hash = x.hash(r)
		err := x.check(v, rank)
		if err == nil {
			err = x.visit(v)
		}
		if err == nil {
			x.path = x.path[:len(x.path)-1]
		}
		return err
	}
	for r := range w.ranks {
		if w.dead.Has(int32(r)) {
			continue
		}
		g := w.ranks[r].g
		_, decided := g.Decision(g.latest)
		if int(g.latest) < x.rounds && (g.latest == 0 || decided) {
			if err := next("%d enters", []any{r}, r, func(v *world, g *Group) {
				v.ranks[r].known = g.failed
				g.Enter(^(uint64(1) << r), 1<<r, 0)
			}); err != nil {
				return err
			}
		}
		for d := range int32(x.n) {
			if !g.failed.Has(d) && (w.dead.Has(d) || x.lies && int(d) != r) {
				if err := next("%d learns of the death of %d", []any{r, d}, r, func(_ *world, g *Group) { g.Fail(int(d)) }); err != nil {
					return err
				}
			}
		}
		for from := range x.n {
			c := x.n*from + r
			if len(w.channels[c]) == 0 {
				continue
			}
			m := w.channels[c][0]
			if err := next("%d gets from %d: %+v", []any{r, from, m}, r, func(v *world, g *Group) {
				v.channels[c] = v.channels[c][1:]
				g.Receive(from, m)
			}); err != nil {
				return err
			}
		}
	}
	if !enabled {
		x.ends++
		for r := range w.ranks {
			if _, decided := w.ranks[r].g.Decision(uint32(x.rounds)); !decided && !w.dead.Has(int32(r)) {
				return fmt.Errorf("rank %d waits for ever", r)
			}
		}
	}
	if len(w.dead) < x.failures {
		for r := range w.ranks {
			if !w.dead.Has(int32(r)) {
				if err := x.die(w, r, 0); err != nil {
					return err
				}
			}
		}
	}
	x.seen[h] = false
	return nil
}

// die lets a rank die. The last messages to each other rank, from to on, may be lost.
func (x *exploration) die(w *world, rank, to int) error {
	for ; to < x.n; to++ {
		c := x.n*rank + to
		sent := w.channels[c]
		for keep := range len(sent) {
			v := &world{w.ranks, slices.Clone(w.channels), w.dead}
			v.channels[c] = sent[:keep]
			if err := x.die(v, rank, to+1); err != nil {
				return err
			}
		}
	}
	x.path = append(x.path, fmt.Sprintf("%d dies", rank))
	v := &world{slices.Clone(w.ranks), slices.Clone(w.channels), w.dead.Add(int32(rank))}
	for from := range x.n {
		v.channels[x.n*from+rank] = nil
	}
	v.ranks[rank].hash = 1
	err := x.visit(v)
	if err == nil {
		x.path = x.path[:len(x.path)-1]
	}
	return err
}

// check compares the decisions of a rank with those of all others.
func (x *exploration) check(w *world, rank int) error {
	for _, a := range w.ranks[rank].g.running {
		if !a.decided {
			continue
		}
		for other := range w.ranks {
			if v, decided := w.ranks[other].g.Decision(a.number); decided && !equal(v, a.value) {
				return fmt.Errorf("rank %d decides %+v in agreement %d, rank %d %+v", rank, a.value, a.number, other, v)
			}
			covered := a.value.Flag&(1<<other) == 0
			if !covered && !a.value.Failed.Has(int32(other)) {
				return fmt.Errorf("the decision %+v of rank %d does not cover rank %d", a.value, rank, other)
			}
			if covered && w.ranks[other].g.latest < a.number {
				return fmt.Errorf("the decision %+v of rank %d covers rank %d, which has not entered", a.value, rank, other)
			}
			if covered && a.value.Number < 1<<other {
				return fmt.Errorf("the decision %+v of rank %d has not the largest number", a.value, rank)
			}
		}
		if len(w.dead.Union(a.value.Failed)) != len(w.dead) {
			return fmt.Errorf("the decision %+v of rank %d has ranks that live: %v are dead", a.value, rank, w.dead)
		}
		if a.number == w.ranks[rank].g.latest && len(a.value.Failed.Union(w.ranks[rank].known)) != len(a.value.Failed) {
			return fmt.Errorf("the decision %+v of rank %d lacks a failure that it knew: %v", a.value, rank, w.ranks[rank].known)
		}
	}
	return nil
}

func equal(v, w Value) bool {
	return v.Flag == w.Flag && v.Number == w.Number && slices.Equal(v.Failed, w.Failed)
}

func clone(g *Group) *Group {
	c := *g
	c.running = make([]*agreement, len(g.running))
	for i, a := range g.running {
		b := *a
		b.reports, b.accepts = slices.Clone(a.reports), slices.Clone(a.accepts)
		c.running[i] = &b
	}
	return &c
}

// state returns a hash of a state. With 64 bits, two of ten million states have the same
// one with a probability of three in a million.
func (x *exploration) state(w *world) uint64 {
	var b []byte
	for r := range w.ranks {
		b = binary.LittleEndian.AppendUint64(b, w.ranks[r].hash)
		if w.dead.Has(int32(r)) { // only what it has decided matters
			for _, a := range w.ranks[r].g.running {
				if a.decided {
					b = appendValue(b, a.value)
				}
			}
		}
	}
	for _, c := range w.channels {
		b = append(b, byte(len(c)))
		for i := range c {
			b = appendMessage(b, &c[i])
		}
	}
	return maphash.Bytes(x.seed, b)
}

func (x *exploration) hash(r *exploredRank) uint64 {
	g := r.g
	b := appendSet([]byte{byte(g.latest)}, g.failed)
	if len(g.running) > 0 {
		b = appendSet(b, r.known)
	}
	for _, a := range g.running {
		b = append(b, byte(a.number), flags(a.entered, a.decided, a.reported, a.accepted), byte(a.ballot), byte(a.parent), byte(a.held))
		b = appendValue(b, a.value)
		slices.SortFunc(a.reports, func(p, q Sent) int { return int(p.To - q.To) })
		for i := range a.reports {
			b = appendMessage(append(b, byte(a.reports[i].To)), &a.reports[i].Message)
		}
		slices.Sort(a.accepts)
		for _, r := range a.accepts {
			b = append(b, 200, byte(r))
		}
	}
	return maphash.Bytes(x.seed, b)
}

func flags(bits ...bool) (f byte) {
	for i, b := range bits {
		if b {
			f |= 1 << i
		}
	}
	return f
}

func appendSet(b []byte, s Set) []byte {
	b = append(b, byte(len(s)))
	for _, r := range s {
		b = append(b, byte(r))
	}
	return b
}

func appendValue(b []byte, v Value) []byte {
	return appendSet(append(b, byte(v.Flag), byte(v.Number)), v.Failed)
}

func appendMessage(b []byte, m *Message) []byte {
	b = append(b, byte(m.Kind), byte(m.Agreement), byte(m.Ballot), byte(m.Held))
	return appendValue(appendValue(b, m.Value), m.HeldValue)
}
