package sched

import "fmt"

// Pairing. Sends to one peer are posted in the order of their numbers, and so are
// receives from one peer; a stream has one tag. By MPI's rule that messages between
// two ranks do not overtake each other (MPI-4.1 3.5), the n-th send of a to b in a
// stream matches the n-th receive of b from a in it, whatever the timing.

// strand is a stream between two ranks.
type strand struct {
	receiver, sender int32
	stream           uint16
}

// pair finds the partner of every send and receive.
func (w *world) pair() *Fault {
	for i := range w.partner {
		w.partner[i] = -1
	}
	n := len(w.graphs)
	// The receives of each rank form one list per sender, linked by nextPost, so only
	// the head of each list must be found.
	head := make([]int32, n*n) // [receiver·n+sender], number in the graph plus 1
	more := map[strand]int32{} // the same for streams other than 0
	for r, g := range w.graphs {
		for i := len(g.Ops) - 1; i >= 0; i-- {
			if op := &g.Ops[i]; op.Kind == Recv {
				if op.Stream == 0 {
					head[r*n+int(op.Peer)] = int32(i) + 1
				} else {
					more[strand{int32(r), op.Peer, op.Stream}] = int32(i) + 1
				}
			}
		}
	}
	for r, g := range w.graphs {
		for i := range g.Ops {
			op := &g.Ops[i]
			if op.Kind != Send {
				continue
			}
			which, at := strand{op.Peer, int32(r), op.Stream}, head[int(op.Peer)*n+r]
			if op.Stream > 0 {
				at = more[which]
			}
			if at == 0 {
				return &Fault{"pairing", r, i, fmt.Sprintf("%s matches no receive there", describe(op))}
			}
			peer := w.graphs[op.Peer]
			j := int(at) - 1
			if got := peer.Ops[j].Dst.Len; got != op.Src.Len {
				return &Fault{"pairing", r, i, fmt.Sprintf("%s, %d bytes, matches operation %d of rank %d, %s, which takes %d",
					describe(op), op.Src.Len, j, op.Peer, describe(&peer.Ops[j]), got)}
			}
			if at = peer.nextPost[j] + 1; op.Stream > 0 {
				more[which] = at
			} else {
				head[int(op.Peer)*n+r] = at
			}
			a, b := w.base[r]+i, w.base[op.Peer]+j
			w.partner[a], w.partner[b] = int32(b), int32(a)
		}
	}
	for r, g := range w.graphs {
		for i := range g.Ops {
			if op := &g.Ops[i]; op.Kind == Recv && w.partner[w.base[r]+i] < 0 {
				return &Fault{"pairing", r, i, fmt.Sprintf("%s matches no send there", describe(op))}
			}
		}
	}
	return nil
}
