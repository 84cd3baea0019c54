package shm

import "github.com/muster-mpi/muster/rdma"

// completionFIFO holds completions until Poll returns them. An entry is reserved when a
// request is accepted, so that completing one never fails. An OpPush may wait for the
// peer's application, so pushes have separate entries: otherwise unanswered ones could use
// up all entries, and nothing else would be accepted.
type completionFIFO struct {
	ring     []rdma.Completion // length is a power of two
	put, get uint32
	reserved int32 // accepted and not yet returned, without pushes
	depth    int32
	pushes   int32 // OpPush, likewise
}

// maxPush is the number of OpPush that may wait for their completion (Attr.MaxPush). Each
// pull that a peer opens makes the owner check all of them.
const maxPush = 256

// firstCompletions is the length of the ring at the start. Most ranks never have more
// completions to return at a time.
const firstCompletions = 8

func newCompletionFIFO(depth int) completionFIFO {
	return completionFIFO{ring: make([]rdma.Completion, firstCompletions), depth: int32(depth)}
}

// reserve reserves an entry and reports whether one was free.
func (f *completionFIFO) reserve(op rdma.Op) bool {
	switch {
	case op == rdma.OpPush && f.pushes < maxPush:
		f.pushes++
	case op != rdma.OpPush && f.reserved < f.depth:
		f.reserved++
	default:
		return false
	}
	return true
}

// release releases an entry.
func (f *completionFIFO) release(op rdma.Op) {
	if op == rdma.OpPush {
		f.pushes--
	} else {
		f.reserved--
	}
}

func (f *completionFIFO) add(c rdma.Completion) {
	if f.put-f.get == uint32(len(f.ring)) {
		f.grow()
	}
	f.ring[f.put&uint32(len(f.ring)-1)] = c
	f.put++
}

// grow doubles the ring. It stays that large, up to depth + maxPush entries.
func (f *completionFIFO) grow() {
	ring := make([]rdma.Completion, 2*len(f.ring))
	for i := f.get; i != f.put; i++ {
		ring[i&uint32(len(ring)-1)] = f.ring[i&uint32(len(f.ring)-1)]
	}
	f.ring = ring
}

func (f *completionFIFO) empty() bool { return f.put == f.get }

// drain moves completions to out and returns their number.
func (f *completionFIFO) drain(out []rdma.Completion) int {
	n := 0
	for n < len(out) && f.get != f.put {
		c := &f.ring[f.get&uint32(len(f.ring)-1)]
		out[n] = *c
		f.release(c.Op)
		*c = rdma.Completion{} // it may reference memory
		f.get++
		n++
	}
	return n
}
