package sched

import (
	"fmt"
	"slices"
	"strings"
)

// Blocking. The graphs are run against each other with the strictest semantics
// that a Port may have: nothing is buffered, so a send ends only when its receive
// is posted too (the synchronous mode of MPI-4.1 3.4). Everything that can be
// posted is. What has ended stays ended, so there is one final state, whatever
// the order; if operations are left in it, they wait for each other.

// run executes all operations and moves their values, and knowledge if asked.
func (w *world) run(v *values, k *knowledge) *Fault {
	need := make([]int32, len(w.state))
	var ready []int32
	for r, g := range w.graphs {
		copy(need[w.base[r]:], g.need)
	}
	for id := len(need) - 1; id >= 0; id-- {
		if need[id] == 0 {
			ready = append(ready, int32(id))
		}
	}
	satisfy := func(id int32) {
		if need[id]--; need[id] == 0 {
			ready = append(ready, id)
		}
	}
	end := func(r, i int) {
		id := int32(w.base[r] + i)
		w.state[id] = ended
		w.order = append(w.order, id)
		for _, j := range w.graphs[r].After(i) {
			k.pass(id, int32(w.base[r])+j)
			satisfy(int32(w.base[r]) + j)
		}
	}
	for len(ready) > 0 {
		id := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		r, i := w.who(id)
		g := w.graphs[r]
		op := &g.Ops[i]
		switch op.Kind {
		case Send, Recv:
			w.state[id] = posted
			if t := g.turn[i]; t >= 0 {
				k.pass(id, int32(w.base[r])+t)
				satisfy(int32(w.base[r]) + t)
			}
			mate := w.partner[id]
			if w.state[mate] != posted {
				continue
			}
			peer, j := w.who(mate)
			if op.Kind == Send {
				k.pass(id, mate)
				v.move(r, op.Src, peer, w.graphs[peer].Ops[j].Dst)
			} else {
				k.pass(mate, id)
				v.move(peer, w.graphs[peer].Ops[j].Src, r, op.Dst)
			}
			end(peer, j)
		case Copy:
			v.move(r, op.Src, r, op.Dst)
		case Reduce:
			if text := v.reduce(r, op.Dst, op.Src); text != "" {
				return &Fault{"value", r, i, describe(op) + " " + text}
			}
		}
		end(r, i)
	}
	if first := slices.IndexFunc(w.state, func(s state) bool { return s != ended }); first >= 0 {
		return w.blocked(int32(first))
	}
	return nil
}

// blocked tells of a cycle: it goes from an operation that has not ended to one
// that it waits for, until it comes to one for the second time.
func (w *world) blocked(id int32) *Fault {
	seen := map[int32]int{}
	var path []int32
	for {
		if at, again := seen[id]; again {
			path = path[at:]
			break
		}
		seen[id] = len(path)
		path = append(path, id)
		id, _ = w.waitsFor(id)
	}
	words := make([]string, len(path))
	for k, id := range path {
		r, i := w.who(id)
		next, why := w.waitsFor(id)
		peer, j := w.who(next)
		words[k] = fmt.Sprintf("operation %d of rank %d (%s) waits for %s %d of rank %d (%s)",
			i, r, describe(w.op(id)), why, j, peer, describe(w.op(next)))
	}
	r, i := w.who(path[0])
	return &Fault{"blocking", r, i, strings.Join(words, "; ")}
}

// waitsFor gives one operation that one which has not ended waits for.
func (w *world) waitsFor(id int32) (next int32, why string) {
	if w.state[id] == posted {
		return w.partner[id], "the post of operation"
	}
	r, i := w.who(id)
	g := w.graphs[r]
	for j := range i {
		before := int32(w.base[r] + j)
		if w.state[before] != ended && slices.Contains(g.After(j), int32(i)) {
			return before, "the end of operation"
		}
		if w.state[before] == waiting && g.Turn(j) == i {
			return before, "its turn after operation"
		}
	}
	return id, "nothing at all, operation" // cannot be: need counts exactly these
}
