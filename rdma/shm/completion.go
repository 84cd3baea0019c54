package shm

import "github.com/muster-mpi/muster/rdma"

// completionFIFO holds what has completed until Poll hands it out. A place is
// reserved when a request is accepted, so that completing one never fails.
type completionFIFO struct {
	ring     []rdma.Completion // a power of two
	put, get uint32
	reserved int // accepted and not yet handed out
	depth    int
}

func newCompletionFIFO(depth int) completionFIFO {
	n := 1
	for n < depth {
		n *= 2
	}
	return completionFIFO{ring: make([]rdma.Completion, n), depth: depth}
}

// reserve takes a place, and reports whether there was one.
func (f *completionFIFO) reserve() bool {
	if f.reserved >= f.depth {
		return false
	}
	f.reserved++
	return true
}

func (f *completionFIFO) add(c rdma.Completion) {
	f.ring[f.put&uint32(len(f.ring)-1)] = c
	f.put++
}

func (f *completionFIFO) empty() bool { return f.put == f.get }

// drain moves completions to out and returns how many.
func (f *completionFIFO) drain(out []rdma.Completion) int {
	n := 0
	for n < len(out) && f.get != f.put {
		c := &f.ring[f.get&uint32(len(f.ring)-1)]
		out[n] = *c
		*c = rdma.Completion{} // it may hold memory
		f.get++
		f.reserved--
		n++
	}
	return n
}
