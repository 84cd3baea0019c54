package sched

// Run executes a graph, again and again if wanted, without allocating. It is
// driven from outside: Start posts what waits for nothing, Ended says that an
// operation that was posted has ended, and posts what waited for it. Copies and
// reductions happen inside these calls.

// Port carries the messages of a Run. Post starts a send of b to op.Peer or a
// receive of b from it; it may end inside Post (ended is true then, and Ended must
// not be called for it) or later, by Run.Ended(id, err). Messages of different
// streams need tags of their own.
type Port interface {
	Post(r *Run, id int, op *Op, b []byte) (ended bool, err error)
	Reduce(r *Run, inout, in []byte) // inout = in ∘ inout
}

// Run is one execution of a graph at a time.
type Run struct {
	Graph *Graph
	Mem   [3][]byte // In, Out, Tmp
	Port  Port
	Who   ArrivalTracker // who has arrived; nil: nobody knows

	left  int // operations that have not ended
	out   int // posted, not ended
	need  []int32
	ready []int32 // stack of operations that can begin
	err   error
	loose loose
}

// Start begins the work. The Run must not be active. Memory of the last run of a
// graph at least as large is used again.
func (r *Run) Start() {
	g := r.Graph
	n := len(g.Ops)
	r.need = append(r.need[:0], g.need...)
	if cap(r.ready) < n {
		r.ready = make([]int32, 0, n)
	}
	r.ready = r.ready[:0]
	r.left, r.out, r.err = n, 0, nil
	r.loose.reset()
	for i := n - 1; i >= 0; i-- {
		if r.need[i] == 0 {
			r.ready = append(r.ready, int32(i))
		}
	}
	r.advance()
}

// Ended says that a posted operation has ended. After an error nothing more is
// posted; what is under way must still end.
func (r *Run) Ended(id int, err error) {
	r.out--
	if r.Graph.Ops[id].Unordered {
		r.loose.ended(int32(id))
	}
	r.end(id, err)
	r.advance()
}

// Fail ends a run: nothing more is posted, and what is under way must still end.
func (r *Run) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Done reports whether nothing is under way and nothing will be begun.
func (r *Run) Done() bool { return r.out == 0 && (r.left == 0 || r.err != nil) }

// Err is the first error.
func (r *Run) Err() error { return r.err }

func (r *Run) bytes(s Span) []byte { return r.Mem[s.Buf][s.Off : s.Off+s.Len : s.Off+s.Len] }

// advance begins everything that can begin, the smallest numbers first as far as
// they are ready together. Unordered sends have their turn when nothing but local work
// is left: what was received until then says who has arrived.
func (r *Run) advance() {
	for r.err == nil {
		if len(r.ready) == 0 {
			if !r.loose.fresh {
				return
			}
			r.serve()
			continue
		}
		i := r.ready[len(r.ready)-1]
		op := &r.Graph.Ops[i]
		if r.loose.fresh && op.Kind >= Copy {
			r.serve()
			continue
		}
		r.ready = r.ready[:len(r.ready)-1]
		switch op.Kind {
		case Send, Recv:
			if op.Unordered {
				r.loose.hold(i)
				continue
			}
			r.post(i, op)
		case Copy:
			copy(r.bytes(op.Dst), r.bytes(op.Src))
			r.end(int(i), nil)
		case Reduce:
			r.Port.Reduce(r, r.bytes(op.Dst), r.bytes(op.Src))
			r.end(int(i), nil)
		}
	}
}

// post posts a message and reports whether it is under way then.
func (r *Run) post(i int32, op *Op) bool {
	s := op.Src
	if op.Kind == Recv {
		s = op.Dst
	}
	ended, err := r.Port.Post(r, int(i), op, r.bytes(s))
	if t := r.Graph.turn[i]; t >= 0 {
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
	after := r.Graph.After(i)
	for k := len(after) - 1; k >= 0; k-- {
		r.satisfy(after[k])
	}
}

func (r *Run) satisfy(i int32) {
	if r.need[i]--; r.need[i] == 0 {
		r.ready = append(r.ready, i)
	}
}
