package sched

import "fmt"

// Synchronisation. A barrier moves no data; what it must do is let no rank end
// before every rank has begun (MPI-4.1 6.3). An operation knows that a rank has
// begun if it is that rank's own, if one that it waits for knows it, or if it
// receives from one that knows it. Sends learn nothing from their receivers: they
// may be buffered.

// knowledge has a set of ranks for every operation. A nil one is not asked for.
type knowledge struct {
	words int
	bits  []uint64
}

func newKnowledge(w *world) *knowledge {
	k := &knowledge{words: (len(w.graphs) + 63) / 64}
	k.bits = make([]uint64, len(w.state)*k.words)
	for r := range w.graphs {
		for id := w.base[r]; id < w.base[r+1]; id++ {
			k.bits[id*k.words+r/64] |= 1 << (r % 64)
		}
	}
	return k
}

// pass tells one operation what another knows.
func (k *knowledge) pass(from, to int32) {
	if k == nil {
		return
	}
	for i := range k.words {
		k.bits[int(to)*k.words+i] |= k.bits[int(from)*k.words+i]
	}
}

// check finds a rank that can end too early. It ends when its last operation
// does, so what any of them knows, it knows.
func (k *knowledge) check(w *world) *Fault {
	if k == nil {
		return nil
	}
	known := make([]uint64, k.words)
	for r := range w.graphs {
		clear(known)
		known[r/64] |= 1 << (r % 64)
		for i, bits := range k.bits[w.base[r]*k.words : w.base[r+1]*k.words] {
			known[i%k.words] |= bits
		}
		for other := range w.graphs {
			if known[other/64]&(1<<(other%64)) == 0 {
				return &Fault{"sync", r, -1, fmt.Sprintf("it can end before rank %d has begun", other)}
			}
		}
	}
	return nil
}
