package sim

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/ft"
)

// A failed rank with recovery. A rank dies in a call, the others notice, and the program
// continues on a smaller communicator, as in docs/guide/failures.md:
//
//	notice   every rank learns of the failure, some time after it
//	shrink   two agreements of the ranks that are left (Comm.Shrink), by the real
//	         internal/ft; its messages are notes
//	repeat   the call again, among the ranks that are left

// Failure describes the failure of a rank.
type Failure struct {
	Rank int
	// Notice is the time in nanoseconds until the others know. They learn it at random
	// times within the last tenth of it, the same in every simulation.
	Notice float64
}

// Recovery is what follows a failure. Times are in µs after it.
type Recovery struct {
	Noticed  float64 `json:"noticed_us"` // the last rank knows
	Shrunk   float64 `json:"shrunk_us"`  // the last rank has the new communicator
	Repeated float64 `json:"repeated_us"`
	Notes    int64   `json:"notes"` // messages of the agreements
	Call     *Result `json:"-"`     // the repeated call
}

// noteBytes is about the length of a message of an agreement with one failure.
const noteBytes = 64

// Recover simulates the recovery from a failure in a call. The time of the call before the
// failure does not matter: it is repeated.
func Recover(m *Machine, call Call, f Failure, repeat func(ranks int, nodes *coll.Topology) (Call, error)) (*Recovery, error) {
	n := call.Shape.Size
	switch {
	case f.Rank < 0 || f.Rank >= n:
		return nil, fmt.Errorf("rank %d of %d ranks cannot fail", f.Rank, n)
	case n < 3:
		return nil, fmt.Errorf("%d ranks: at least two must be left", n)
	}
	s, err := New(Config{Machine: m, Calls: []Call{call}})
	if err != nil {
		return nil, err
	}
	a := &agreements{s: s, dead: int32(f.Rank), groups: make([]*ft.Group, n), round: make([]uint32, n)}
	s.agree = a
	for r := range s.ranks {
		a.groups[r] = ft.NewGroup(r, n, ft.Arity)
		if r != f.Rank {
			s.q.push(event{t: int64((f.Notice - 0.1*f.Notice*random(7, r)) * picos), dst: int32(r), kind: evStart})
		}
	}
	x := &Recovery{Noticed: f.Notice / 1e3}
	s.left = n - 1
	if err := s.events(); err != nil {
		return nil, err
	}
	x.Notes = s.stats.Near + s.stats.Far
	last := int64(0)
	arrive := make([]float64, 0, n-1)
	var nodeOf []int
	for r := range s.ranks {
		if r != f.Rank {
			arrive = append(arrive, float64(s.ranks[r].end)/picos)
			nodeOf = append(nodeOf, s.node(int32(r)))
			last = max(last, s.ranks[r].end)
		}
	}
	x.Shrunk = float64(last) / 1e6
	var nodes *coll.Topology
	if s.topology != nil {
		nodes = coll.NewTopology(dense(nodeOf), s.topology.Rails)
	}
	again, err := repeat(n-1, nodes)
	if err != nil {
		return nil, err
	}
	if s, err = New(Config{Machine: m, Calls: []Call{again}, Arrive: func(r int) float64 { return arrive[r] }}); err != nil {
		return nil, err
	}
	if x.Call, err = s.Run(); err != nil {
		return nil, err
	}
	x.Repeated = x.Shrunk + x.Call.Last
	return x, nil
}

// dense numbers nodes without gaps: the failed rank may have been alone on its node.
func dense(nodeOf []int) []int {
	known := map[int]int{}
	for i, n := range nodeOf {
		if _, ok := known[n]; !ok {
			known[n] = len(known)
		}
		nodeOf[i] = known[n]
	}
	return nodeOf
}

// agreements is the state of the agreements of all ranks.
type agreements struct {
	s      *Sim
	dead   int32
	groups []*ft.Group
	round  []uint32 // agreements that a rank has entered
	notes  []ft.Message
	free   []int32
}

// shrinkRounds is the number of agreements of Comm.Shrink.
const shrinkRounds = 2

// handle does what a rank does when something happens.
func (a *agreements) handle(k *rank, e *event) {
	r, g := e.dst, a.groups[e.dst]
	if e.kind == evStart {
		k.begun = true
		g.Fail(int(a.dead))
		a.round[r] = g.Enter(^uint64(0), uint64(r), 0)
	} else {
		k.cpu += a.s.receiveCost(r, e.src, e.bytes, false)
		m := a.notes[e.op]
		a.free = append(a.free, e.op)
		g.Receive(int(e.src), m)
	}
	a.send(r, k)
	for k.begun {
		if _, ok := g.Decision(a.round[r]); !ok {
			return
		}
		if a.round[r] == shrinkRounds {
			k.begun, k.done, k.end = false, true, k.cpu
			a.s.left--
			return
		}
		a.round[r] = g.Enter(^uint64(0), uint64(r), 0)
		a.send(r, k)
	}
}

// send sends the messages of a rank.
func (a *agreements) send(r int32, k *rank) {
	g, s := a.groups[r], a.s
	for _, out := range g.Out {
		i := int32(len(a.notes))
		if n := len(a.free); n > 0 {
			i, a.free = a.free[n-1], a.free[:n-1]
			a.notes[i] = out.Message
		} else {
			a.notes = append(a.notes, out.Message)
		}
		if out.To == a.dead {
			a.free = append(a.free, i)
			continue
		}
		c := s.costs(r, out.To)
		k.cpu += s.slow(r, c.processor(noteBytes))
		e := event{src: r, dst: out.To, op: i, bytes: noteBytes, kind: evHand}
		if c == &s.near {
			s.stats.Near++
			e.t = k.cpu + c.latency
			s.q.push(e)
			continue
		}
		s.stats.Far++
		s.inject(k.cpu, &e)
	}
	g.Out = g.Out[:0]
}
