package sched

import "fmt"

// Unordered sends. They go in whatever order peers arrive, some at a time, so they must
// end in every order. It is enough that the receive which a loose send meets is
// posted as soon as its rank has begun: after copies and reductions of what the
// rank has itself, but after no message. Then a loose send that was posted waits
// for nothing but the arrival of its peer, the next gets its port, and all of them
// are posted in the end. That is the state from which validate_run.go goes on,
// where ports do not count.

// checkLoose gives the first loose send that something else could hold up.
func (w *world) checkLoose() *Fault {
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
			mate := int(w.partner[w.base[r]+i]) - w.base[op.Peer]
			if !early[op.Peer][mate] {
				return &Fault{"loose", r, i, fmt.Sprintf("%s may go in any order, but operation %d of rank %d, %s, waits for other messages",
					describe(op), mate, op.Peer, describe(&w.graphs[op.Peer].Ops[mate]))}
			}
		}
	}
	return nil
}

// early tells of each operation whether it begins before any message has ended.
func (g *Graph) early() []bool {
	early := make([]bool, len(g.Ops))
	for i := range early {
		early[i] = true
	}
	for i := range g.Ops { // what waits has a larger number
		op := &g.Ops[i]
		if t := g.Turn(i); t >= 0 && (!early[i] || op.Unordered) {
			early[t] = false
		}
		if !early[i] || op.Kind <= Recv {
			for _, j := range g.After(i) {
				early[j] = false
			}
		}
	}
	return early
}
