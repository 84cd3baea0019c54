package p2p

// The search: every order of the events of a program, depth first. A state that was reached
// before, on another path, is not searched again, but the orders that lead on from it count
// for each path to it. States cannot repeat on one path, since every event consumes
// something: a step of a program, a packet, a work request.

import (
	"fmt"
	"strings"
)

// tally is the result of a search.
type tally struct {
	programs    int
	states      int     // distinct
	transitions int     // events tried, one for each state and event
	orders      float64 // complete orders of events
	longest     int     // events of the longest order
	outcomes    int     // distinct matchings
	allowed     int     // matchings that MPI allows
	// RTRs of one order for each distinct end
	used, wasted, revoked, stopped uint64
}

func (t *tally) add(o tally) {
	t.programs += o.programs
	t.states += o.states
	t.transitions += o.transitions
	t.orders += o.orders
	t.longest = max(t.longest, o.longest)
	t.outcomes += o.outcomes
	t.allowed += o.allowed
	t.used, t.wasted = t.used+o.used, t.wasted+o.wasted
	t.revoked, t.stopped = t.revoked+o.revoked, t.stopped+o.stopped
}

func (t tally) String() string {
	s := fmt.Sprintf("%d programs, %d states, %d transitions, %.4g orders (the longest of %d events), %d of %d matchings that MPI allows",
		t.programs, t.states, t.transitions, t.orders, t.longest, t.outcomes, t.allowed)
	if t.used+t.wasted+t.revoked > 0 {
		s += fmt.Sprintf("; RTRs of one order to each end: %d used, %d wasted, %d revoked, %d not sent", t.used, t.wasted, t.revoked, t.stopped)
	}
	return s
}

// search is the search through one program.
type search struct {
	tally
	run     *run
	path    []event
	enabled [][]event          // by depth, for reuse
	seen    map[uint64]float64 // orders that lead on from a state
	allowed map[outcome]bool
	ends    map[outcome]bool
	failure string // the order that violates an invariant
}

// searcher holds what is reused for the next program of a setting.
type searcher struct {
	search
	ranks int
}

// explore searches all orders of a program. It returns a description of a violation, or "".
func (s *searcher) explore(p program, set setting, allowed map[outcome]bool) (tally, string) {
	if s.run == nil || s.run.setting != set || s.ranks != len(p) {
		s.run, s.ranks = newRun(p, set), len(p)
	}
	if s.seen == nil {
		s.seen, s.ends = map[uint64]float64{}, map[outcome]bool{}
	}
	clear(s.seen)
	clear(s.ends)
	s.tally, s.path, s.failure, s.search.allowed = tally{programs: 1}, s.path[:0], "", allowed
	s.run.reset(p)
	s.orders = s.visit()
	s.states, s.outcomes, s.tally.allowed = len(s.seen), len(s.ends), len(allowed)
	return s.tally, s.failure
}

// visit searches from the current state and returns the number of orders.
func (s *search) visit() float64 {
	if s.run.fault != "" {
		s.report()
		return 0
	}
	h := s.run.hash()
	if n, ok := s.seen[h]; ok {
		return n
	}
	depth := len(s.path)
	if depth == len(s.enabled) {
		s.enabled = append(s.enabled, nil)
	}
	events := s.run.events(s.enabled[depth][:0])
	s.enabled[depth] = events
	if len(events) == 0 {
		s.end()
		s.seen[h] = 1
		return 1
	}
	var orders float64
	for i, e := range events {
		if i > 0 {
			s.replay()
		}
		s.transitions++
		s.path = append(s.path, e)
		s.run.happen(e)
		orders += s.visit()
		s.path = s.path[:depth]
		if s.failure != "" {
			return 0
		}
	}
	s.seen[h] = orders
	return orders
}

// replay brings the run to the state at the end of path.
func (s *search) replay() {
	s.run.reset(s.run.p)
	s.run.replaying = true
	for _, e := range s.path {
		s.run.happen(e)
	}
	s.run.replaying = false
}

// end checks a complete order.
func (s *search) end() {
	s.longest = max(s.longest, len(s.path))
	for _, n := range s.run.w.nodes {
		for _, l := range n.links {
			s.used, s.wasted = s.used+l.Stats.RTRUsed, s.wasted+l.Stats.RTRWasted
			s.revoked, s.stopped = s.revoked+l.Stats.RTRRevoked, s.stopped+l.Stats.RTRStopped
		}
	}
	s.run.final()
	if s.run.fault == "" && s.run.dead < 0 {
		s.ends[s.run.got] = true
		if s.run.p.overtakes(s.run.got) {
			s.run.wrong("a message overtook another: %x", uint64(s.run.got))
		} else if !s.allowed[s.run.got] {
			s.run.wrong("MPI does not allow this matching: %x", uint64(s.run.got))
		}
	}
	if s.run.fault != "" {
		s.report()
	}
}

// report describes the order that violates an invariant.
func (s *search) report() {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nsetting: %s\n%sevents:\n", s.run.fault, s.run.setting, s.run.p)
	for _, e := range s.path {
		fmt.Fprintf(&b, "  %s\n", e)
	}
	s.failure = b.String()
}
