package sched

import (
	"fmt"
	"slices"
	"strings"
)

// Blocking. The graphs are executed together with the strictest semantics that a Port
// may have: nothing is buffered, so a send completes only when its receive is posted
// too (the synchronous mode of MPI-4.1 3.4). Everything that can be posted is posted.
// Completed operations stay completed, so the final state does not depend on the
// order; operations that are left in it are deadlocked.

// run executes all operations on values, and on knowledge if k is not nil.
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
		for _, j := range w.graphs[r].Successors(i) {
			k.pass(id, int32(w.base[r])+j)
			satisfy(int32(w.base[r]) + j)
		}
	}
	for len(ready) > 0 {
		id := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		r, i := w.locate(id)
		g := w.graphs[r]
		op := &g.Ops[i]
		if op.Kind != Recv && v.unseen(r, op.Src) || op.Kind == Reduce && v.unseen(r, op.Dst) {
			return &Fault{"shared", r, i, describe(op) + " reads bytes that the rank has neither written nor taken over"}
		}
		switch op.Kind {
		case Send, Recv:
			w.state[id] = posted
			if t := g.nextPost[i]; t >= 0 {
				k.pass(id, int32(w.base[r])+t)
				satisfy(int32(w.base[r]) + t)
			}
			partner := w.partner[id]
			if w.state[partner] != posted {
				continue
			}
			peer, j := w.locate(partner)
			if op.Kind == Send {
				k.pass(id, partner)
				v.move(r, op.Src, peer, w.graphs[peer].Ops[j].Dst)
			} else {
				k.pass(partner, id)
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
		return w.reportDeadlock(int32(first))
	}
	return nil
}

// reportDeadlock reports a deadlock. It follows dependencies from an incomplete operation
// until it meets an operation for the second time.
func (w *world) reportDeadlock(id int32) *Fault {
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
		r, i := w.locate(id)
		next, why := w.waitsFor(id)
		peer, j := w.locate(next)
		words[k] = fmt.Sprintf("operation %d of rank %d (%s) waits for %s %d of rank %d (%s)",
			i, r, describe(w.op(id)), why, j, peer, describe(w.op(next)))
	}
	r, i := w.locate(path[0])
	return &Fault{"blocking", r, i, strings.Join(words, "; ")}
}

// waitsFor returns an operation that an incomplete operation waits for.
func (w *world) waitsFor(id int32) (next int32, why string) {
	if w.state[id] == posted {
		return w.partner[id], "the posting of operation"
	}
	r, i := w.locate(id)
	g := w.graphs[r]
	for j := range i {
		before := int32(w.base[r] + j)
		if w.state[before] != ended && slices.Contains(g.Successors(j), int32(i)) {
			return before, "the completion of operation"
		}
		if w.state[before] == waiting && g.NextPost(j) == i {
			return before, "the earlier posting of operation"
		}
	}
	return id, "nothing, operation" // unreachable: need counts exactly these
}
