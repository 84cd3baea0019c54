package sched

import "fmt"

// Unordered sends are posted in the order in which peers arrive, a few at a time, so
// they must complete in every order. It is sufficient that the matching receive is
// posted as soon as its rank has begun: after copies and reductions of the rank's own
// data, but after no message. A posted unordered send then waits only for the arrival
// of its peer, the next one gets its port, and all of them are eventually posted.
// validate_run.go starts from that state and ignores ports.

// checkUnordered returns the first unordered send that could wait for anything else.
func (w *world) checkUnordered() *Fault {
	var early [][]bool // by rank; made for those that are sent to
	for r, g := range w.graphs {
		for i := range g.Ops {
			op := &g.Ops[i]
			if !op.Unordered {
				continue
			}
			if early == nil {
				early = make([][]bool, len(w.graphs))
			}
			if early[op.Peer] == nil {
				early[op.Peer] = w.graphs[op.Peer].early()
			}
			partner := int(w.partner[w.base[r]+i]) - w.base[op.Peer]
			if !early[op.Peer][partner] {
				return &Fault{"unordered", r, i, fmt.Sprintf("%s may be posted in any order, but operation %d of rank %d, %s, waits for other messages",
					describe(op), partner, op.Peer, describe(&w.graphs[op.Peer].Ops[partner]))}
			}
		}
	}
	return nil
}

// early reports for each operation whether it starts before any message has completed.
func (g *Graph) early() []bool {
	early := make([]bool, len(g.Ops))
	for i := range early {
		early[i] = true
	}
	for i := range g.Ops { // dependent operations have larger numbers
		op := &g.Ops[i]
		if t := g.NextPost(i); t >= 0 && (!early[i] || op.Unordered) {
			early[t] = false
		}
		if !early[i] || op.Kind <= Recv {
			for _, j := range g.Successors(i) {
				early[j] = false
			}
		}
	}
	return early
}
