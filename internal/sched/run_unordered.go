package sched

// Unordered sends may be posted in any order, so that they follow the order in which
// peers arrive (T2 6.4). The graph defines which sends are unordered and their
// default order; an ArrivalTracker reports which peers have arrived. The states of an
// unordered send that is ready:
//
//	hold    it is queued
//	serve   sends to arrived peers are posted first, then the rest in default order
//	ended   a send has completed, and the next may be posted
//
// At most Graph.Ports sends to arrived peers are under way: the ports of T2 3.4. A
// send to a peer that has not arrived transfers nothing yet, unless it is short and
// completes at once. It therefore uses a port only while no arrived peer needs it, so
// a late peer blocks no other. Call Serve when a peer may have arrived.
//
// Any order is correct: Validate proves that unordered sends wait only for the
// arrival of their peers (validate_unordered.go).

// ArrivalTracker reports whether the peer of an unordered send has entered the same
// collective. It may report an arrival late, but never early.
type ArrivalTracker interface {
	Arrived(r *Run, id int, op *Op) bool
}

// unorderedSends is the state of a run's unordered sends.
type unorderedSends struct {
	held  []int32 // ready, in default order
	under []int32 // under way
	fresh bool    // held must be examined
	moved int     // sends posted before an earlier one
}

func (l *unorderedSends) reset() {
	l.held, l.under = l.held[:0], l.under[:0]
	l.fresh, l.moved = false, 0
}

func (l *unorderedSends) hold(i int32) {
	l.held = append(l.held, i)
	l.fresh = true
}

func (l *unorderedSends) remove(i int32) {
	for k, u := range l.under {
		if u == i {
			last := len(l.under) - 1
			l.under[k] = l.under[last]
			l.under = l.under[:last]
			break
		}
	}
	l.fresh = len(l.held) > 0
}

// CountHeld returns the number of unordered sends that are ready and not posted.
func (r *Run) CountHeld() int { return len(r.unordered.held) }

// Overtaken returns the number of unordered sends of this run that were posted ahead
// of their default order because their peers had arrived.
func (r *Run) Overtaken() int { return r.unordered.moved }

// Serve posts unordered sends whose peers may have arrived since the last call.
func (r *Run) Serve() {
	if len(r.unordered.held) > 0 && r.err == nil {
		r.unordered.fresh = true
		r.advance()
	}
}

// serve posts as many unordered sends as the ports allow.
func (r *Run) serve() {
	l, ports := &r.unordered, r.Graph.Ports
	l.fresh = false
	here := 0
	for _, i := range l.under {
		if r.arrived(i) {
			here++
		}
	}
	away := len(l.under) - here
	if r.Arrivals != nil {
		kept := 0
		for k, i := range l.held {
			if r.err == nil && here < ports && r.arrived(i) {
				if kept > 0 {
					l.moved++
				}
				if r.depart(i) {
					here++
				}
				continue
			}
			l.held[kept] = l.held[k]
			kept++
		}
		l.held = l.held[:kept]
	}
	gone := 0
	for gone < len(l.held) && r.err == nil && here+away < ports {
		if r.depart(l.held[gone]) {
			away++
		}
		gone++
	}
	l.held = l.held[:copy(l.held, l.held[gone:])]
}

func (r *Run) arrived(i int32) bool {
	return r.Arrivals != nil && r.Arrivals.Arrived(r, int(i), &r.ops[i])
}

// depart posts an unordered send and reports whether it is still under way afterwards.
func (r *Run) depart(i int32) bool {
	if !r.post(i, &r.ops[i]) {
		return false
	}
	r.unordered.under = append(r.unordered.under, i)
	return true
}
