package sched

// A Run executes a graph, any number of times, without allocating. The caller drives
// it: Start posts all operations without dependencies; Ended reports the completion
// of a posted operation, and the Run posts the operations that waited for it. Copies
// and reductions happen inside these calls.

import "github.com/muster-mpi/muster/internal/longcopy"

// Port transfers the messages of a Run. Post starts a send of b to r.Peer(op) or a
// receive of b from it. If the operation completes inside Post, Post returns true and
// HandleEnd must not be called for it; otherwise the caller calls Run.HandleEnd(id, err)
// later. Messages of different streams need different tags.
type Port interface {
	Post(r *Run, id int, op *Op, b []byte) (ended bool, err error)
	Reduce(r *Run, inout, in []byte) // inout = in ∘ inout
}

// Run is an execution of a graph, one at a time.
type Run struct {
	Graph    *Graph
	Rank     int // needed if ranks share the graph (share.go)
	Mem      [Bufs][]byte
	Port     Port
	Arrivals ArrivalTracker // nil if arrivals are not tracked
	// InSegment means that the ranks of a node have the same memory for Shared: then
	// hand-overs have no data. It is the same for all of them. The memory must not be
	// that of the previous run, which other ranks may not have ended; but when a run
	// ends here, all ranks of the node have begun it (Validate), so two suffice.
	InSegment bool

	left      int // operations not completed
	out       int // operations posted and not completed
	need      []int32
	ready     []int32 // stack of operations that can start
	ops       []Op    // of the graph, or of the window
	window    *window // of a generated graph, else nil
	err       error
	unordered unorderedSends
}

// Start starts an execution. The Run must not be active. Start reuses the memory of
// an earlier execution of a graph at least as large.
func (r *Run) Start() {
	g := r.Graph
	r.out, r.err = 0, nil
	r.unordered.reset()
	if g.generator != nil {
		r.startWindow()
		r.advance()
		return
	}
	n := len(g.Ops)
	r.ops, r.window = g.Ops, nil
	r.need = append(r.need[:0], g.need...)
	if cap(r.ready) < n {
		r.ready = make([]int32, 0, n)
	}
	r.ready = r.ready[:0]
	r.left = n
	for i := n - 1; i >= 0; i-- {
		if r.need[i] == 0 {
			r.ready = append(r.ready, int32(i))
		}
	}
	r.advance()
}

// HandleEnd reports the completion of a posted operation. After an error the Run posts
// nothing more; operations under way must still complete.
func (r *Run) HandleEnd(id int, err error) {
	r.out--
	if r.ops[id].Unordered {
		r.unordered.remove(int32(id))
	}
	r.end(id, err)
	r.advance()
}

// Fail aborts an execution: the Run posts nothing more, and operations under way must
// still complete.
func (r *Run) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Done reports whether no operation is under way and none will be started.
func (r *Run) Done() bool { return r.out == 0 && (r.left == 0 || r.err != nil) }

// Err returns the first error.
func (r *Run) Err() error { return r.err }

// Op returns an operation by the number that the Run has passed to its Port.
func (r *Run) Op(id int) *Op { return &r.ops[id] }

// Peer returns the rank that an operation of the run communicates with.
func (r *Run) Peer(op *Op) int32 { return r.Graph.Peer(r.Rank, op) }

func (r *Run) bytes(s Span) []byte { return r.Mem[s.Buf][s.Off : s.Off+s.Len : s.Off+s.Len] }

// advance starts all ready operations, smallest numbers first among those that
// became ready together. It posts unordered sends once only local work is ready: the
// messages received by then show which peers have arrived.
func (r *Run) advance() {
	for r.err == nil {
		if len(r.ready) == 0 {
			if r.window != nil && r.admit() {
				continue
			}
			if !r.unordered.fresh {
				return
			}
			r.serve()
			continue
		}
		i := r.ready[len(r.ready)-1]
		op := &r.ops[i]
		if r.unordered.fresh && op.Kind >= Copy {
			r.serve()
			continue
		}
		r.ready = r.ready[:len(r.ready)-1]
		switch op.Kind {
		case Send, Recv:
			if op.Unordered {
				r.unordered.hold(i)
				continue
			}
			r.post(i, op)
		case Copy:
			longcopy.Copy(r.bytes(op.Dst), r.bytes(op.Src))
			r.end(int(i), nil)
		case Reduce:
			r.Port.Reduce(r, r.bytes(op.Dst), r.bytes(op.Src))
			r.end(int(i), nil)
		}
	}
}

// post posts a message and reports whether it is still under way afterwards.
func (r *Run) post(i int32, op *Op) bool {
	b := r.bytes(op.data())
	if op.HandOver && r.InSegment {
		b = b[:0]
	}
	ended, err := r.Port.Post(r, int(i), op, b)
	if r.window != nil {
		r.continuePosted(i)
	} else if t := r.Graph.nextPost[i]; t >= 0 {
		r.satisfy(t)
	}
	if ended || err != nil {
		r.end(int(i), err)
		return false
	}
	r.out++
	return true
}

func (r *Run) end(i int, err error) {
	if err != nil {
		if r.err == nil {
			r.err = err
		}
		return
	}
	r.left--
	if r.window != nil {
		r.continueEnded(int32(i))
		return
	}
	after := r.Graph.Successors(i)
	for k := len(after) - 1; k >= 0; k-- {
		r.satisfy(after[k])
	}
}

func (r *Run) satisfy(i int32) {
	if r.need[i]--; r.need[i] == 0 {
		r.ready = append(r.ready, i)
	}
}
