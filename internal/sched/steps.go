package sched

// Analysis of the graphs of all ranks together: which send matches which receive, in
// which step, and how much is sent. Pictures and summaries are based on it.

import "fmt"

// Totals are counts over the graphs of all ranks.
type Totals struct {
	Steps    int // steps in which messages are sent
	Messages int
	Bytes    int // sent by all ranks together
	// HandOvers are not among the messages; Shared is the bytes that a node shares.
	HandOvers, Shared int
	// The largest numbers of bytes that one rank sends, receives and needs as scratch.
	MostSent, MostReceived, Scratch int
	Copies, Reductions              int
}

// Total returns the totals of the graphs of all ranks, rank 0 first.
func Total(graphs []*Graph) (Totals, error) {
	f, err := fit(graphs)
	if err != nil {
		return Totals{}, err
	}
	var t Totals
	sends := map[int32]bool{}
	for r, g := range graphs {
		var sent, received int
		for i, op := range g.Ops {
			switch op.Kind {
			case Send:
				sends[f.step[r][i]] = true
				if op.HandOver {
					t.HandOvers++
					continue
				}
				t.Messages++
				sent += op.Src.Len
			case Recv:
				if !op.HandOver {
					received += op.Dst.Len
				}
			case Copy:
				if op.Src.Len > 0 { // an empty copy only joins dependencies
					t.Copies++
				}
			case Reduce:
				t.Reductions++
			}
		}
		t.Bytes += sent
		t.MostSent, t.MostReceived = max(t.MostSent, sent), max(t.MostReceived, received)
		t.Scratch, t.Shared = max(t.Scratch, g.Tmp), max(t.Shared, g.Shared)
	}
	t.Steps = len(sends)
	return t, nil
}

// fitted holds what follows only from all graphs together.
type fitted struct {
	graphs  []*Graph
	before  [][][]int32
	partner [][]int32 // the number of the matching operation in the peer's graph
	step    [][]int32
}

// fit matches the n-th send with the n-th receive and assigns a step to every
// operation: its own, or, if the algorithm set none, the length of the longest path
// to it.
func fit(graphs []*Graph) (*fitted, error) {
	n := len(graphs)
	f := &fitted{graphs: graphs, before: make([][][]int32, n), partner: make([][]int32, n), step: make([][]int32, n)}
	type lane struct {
		from, to int
		stream   uint16
	}
	sends := map[lane][]int32{}
	for r, g := range graphs {
		if g.Rank != r || g.Size != n {
			return nil, fmt.Errorf("graph %d of %d belongs to rank %d of %d; the graphs of all ranks are needed, in order", r, n, g.Rank, g.Size)
		}
		f.before[r], f.partner[r], f.step[r] = g.predecessors(), make([]int32, len(g.Ops)), make([]int32, len(g.Ops))
		for i, op := range g.Ops {
			if f.partner[r][i] = -1; op.Kind == Send {
				l := lane{r, int(op.Peer), op.Stream}
				sends[l] = append(sends[l], int32(i))
			}
		}
	}
	for r, g := range graphs {
		for i, op := range g.Ops {
			if op.Kind != Recv {
				continue
			}
			l := lane{int(op.Peer), r, op.Stream}
			if len(sends[l]) == 0 {
				return nil, fmt.Errorf("operation %d of rank %d waits for a message that rank %d does not send", i, r, op.Peer)
			}
			j := sends[l][0]
			if sent := graphs[op.Peer].Ops[j].Src.Len; sent != op.Dst.Len {
				return nil, fmt.Errorf("operation %d of rank %d sends %d bytes, operation %d of rank %d receives %d", j, op.Peer, sent, i, r, op.Dst.Len)
			}
			f.partner[r][i], f.partner[op.Peer][j] = j, int32(i)
			sends[l] = sends[l][1:]
		}
	}
	for r, g := range graphs {
		for i, op := range g.Ops {
			if op.Kind == Send && f.partner[r][i] < 0 {
				return nil, fmt.Errorf("operation %d of rank %d sends a message that rank %d does not receive", i, r, op.Peer)
			}
		}
	}
	return f, f.count()
}

// order calls do for every operation after all its dependencies, and for a receive
// also after its send. In a picture a message arrives at once. Operations for which
// mayRun returns false are left for a later call with the same done.
func (f *fitted) order(done [][]bool, mayRun func(rank, i int) bool, do func(rank, i int)) {
	for again := true; again; {
		again = false
		for r, g := range f.graphs {
		next:
			for i, op := range g.Ops {
				if done[r][i] || !mayRun(r, i) || op.Kind == Recv && !done[op.Peer][f.partner[r][i]] {
					continue
				}
				for _, d := range f.before[r][i] {
					if !done[r][d] {
						continue next
					}
				}
				do(r, i)
				done[r][i], again = true, true
			}
		}
	}
}

func (f *fitted) newDone() [][]bool {
	done := make([][]bool, len(f.graphs))
	for r, g := range f.graphs {
		done[r] = make([]bool, len(g.Ops))
	}
	return done
}

// count sets the steps and returns an error if the graphs deadlock.
func (f *fitted) count() error {
	counted := false
	for _, g := range f.graphs {
		for _, op := range g.Ops {
			counted = counted || op.Step != 0
		}
	}
	done := f.newDone()
	always := func(int, int) bool { return true }
	f.order(done, always, func(r, i int) {
		op := &f.graphs[r].Ops[i]
		if counted {
			f.step[r][i] = op.Step
			return
		}
		var s int32
		for _, d := range f.before[r][i] {
			s = max(s, f.step[r][d])
		}
		switch op.Kind {
		case Send:
			s++
		case Recv:
			s = max(s, f.step[op.Peer][f.partner[r][i]])
		}
		f.step[r][i] = s
	})
	for r := range done {
		for i := range done[r] {
			if !done[r][i] {
				return fmt.Errorf("operation %d of rank %d can never start: the ranks deadlock", i, r)
			}
		}
	}
	return nil
}
