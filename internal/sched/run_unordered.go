package sched

// Unordered sends: those that may go in any order, so that they can go in the order in
// which peers arrive (T2 6.4). The graph says which they are and in which order
// they stand if nothing is known; ArrivalTracker says who has arrived. From the moment
// that a loose send could begin:
//
//	hold    it waits with the others
//	serve   those whose peers are there go first, then the rest in their order
//	ended   one has ended, and another may go
//
// At most Graph.Ports are under way to peers that are there: the ports of T2 3.4.
// A send to a peer that has not come moves nothing yet, unless it is short and ends
// at once. So it has a port only while no peer that is there needs it: a peer that
// comes late blocks nobody. Serve is called when somebody may have arrived.
//
// Any order is right. Validate has shown that loose sends wait for nothing but the
// arrival of their peers (validate_unordered.go).

// ArrivalTracker reports whether the peer of a loose send is known to have begun the same
// collective. It may say so late, but not before it is true.
type ArrivalTracker interface {
	Here(r *Run, id int, op *Op) bool
}

// loose is the state of a run's loose sends.
type loose struct {
	held  []int32 // could begin, in the order in which they stand
	under []int32 // under way
	fresh bool    // somebody should look at held
	moved int     // that went before one that stands before them
}

func (l *loose) reset() {
	l.held, l.under = l.held[:0], l.under[:0]
	l.fresh, l.moved = false, 0
}

func (l *loose) hold(i int32) {
	l.held = append(l.held, i)
	l.fresh = true
}

func (l *loose) ended(i int32) {
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

// Held is how many loose sends wait for their turn.
func (r *Run) Held() int { return len(r.loose.held) }

// Overtaken is how many loose sends of this run went out of their order, because
// their peers were there.
func (r *Run) Overtaken() int { return r.loose.moved }

// Serve is for a moment in which somebody may have arrived.
func (r *Run) Serve() {
	if len(r.loose.held) > 0 && r.err == nil {
		r.loose.fresh = true
		r.advance()
	}
}

// serve posts as many loose sends as may go now.
func (r *Run) serve() {
	l, ports := &r.loose, r.Graph.Ports
	l.fresh = false
	here := 0
	for _, i := range l.under {
		if r.here(i) {
			here++
		}
	}
	away := len(l.under) - here
	if r.Who != nil {
		kept := 0
		for k, i := range l.held {
			if r.err == nil && here < ports && r.here(i) {
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

func (r *Run) here(i int32) bool {
	return r.Who != nil && r.Who.Here(r, int(i), &r.Graph.Ops[i])
}

// depart posts a loose send and reports whether it is under way then.
func (r *Run) depart(i int32) bool {
	if !r.post(i, &r.Graph.Ops[i]) {
		return false
	}
	r.loose.under = append(r.loose.under, i)
	return true
}
