package sched

import "fmt"

// Synchronization. A barrier transfers no data; it must let no rank end before every
// rank has begun (MPI-4.1 6.3). The same is required of the ranks of a node that share a
// buffer, so that two memories serve any number of runs (Run.InSegment). The completion of an operation implies that a rank has
// begun if the operation belongs to that rank, if an operation that it waits for
// implies it, or if the matching send of a receive implies it. A send implies nothing
// about its receiver, because it may be buffered.

// knowledge holds, for every operation, the set of ranks that must have begun. A nil
// knowledge disables the check.
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

// pass adds the set of one operation to that of another.
func (k *knowledge) pass(from, to int32) {
	if k == nil {
		return
	}
	for i := range k.words {
		k.bits[int(to)*k.words+i] |= k.bits[int(from)*k.words+i]
	}
}

// check returns a rank that can end too early. A rank ends when its last operation
// completes, so its set is the union of those of its operations.
func (k *knowledge) check(w *world, t *Task) *Fault {
	if k == nil {
		return nil
	}
	known := make([]uint64, k.words)
	for r, g := range w.graphs {
		clear(known)
		known[r/64] |= 1 << (r % 64)
		for i, bits := range k.bits[w.base[r]*k.words : w.base[r+1]*k.words] {
			known[i%k.words] |= bits
		}
		for other := range w.graphs {
			if !t.Sync && (g.Shared == 0 || !t.sameNode(r, other)) {
				continue
			}
			if known[other/64]&(1<<(other%64)) == 0 {
				return &Fault{"sync", r, -1, fmt.Sprintf("it can end before rank %d has begun", other)}
			}
		}
	}
	return nil
}
