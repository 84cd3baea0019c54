package core

// Requests (MPI-4.1 section 3.7): what completes them, and when they end. The calls that wait
// and test are in request_wait.go.

import (
	"runtime"
	"sync"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// request is a request of the program. What completes it is op if that is set, otherwise the
// mpi.Request, whose zero value is complete.
type request struct {
	mpi.Request
	op      operation
	comm    *comm // whose error handler gets its errors
	owner   owner // the same for requests that have no communicator: a window
	landing *landing
	send    bool         // its status is empty: a send or a collective call
	done    func() error // runs once when the operation is complete; may be nil

	// start begins the operation of a persistent request: it sets Request or op. It is nil
	// if the request is not persistent. active reports whether it was started and has not
	// been waited for.
	start  func(*request) error
	active bool

	// over reports that the operation is complete: its result is in status and err.
	over   bool
	status status
	err    error
}

// operation is what completes a request that is more than an mpi.Request. Its methods are
// called without locks.
type operation interface {
	ready() bool                 // whether it is complete, without waiting
	result() (mpi.Status, error) // after ready returned true
}

// Optional methods of an operation.
type (
	canceler interface{ cancel() error }
	// querier sets the status of a generalized request, each time that it is asked for.
	querier interface{ query(*status) error }
	// releaser does what must happen when the request is freed.
	releaser interface{ release() error }
)

// messaging is the part of Process for messages and requests.
type messaging struct {
	requests  table[request]
	spare     requestPool // of requests
	messages  table[probed]
	classes   table[grequestCalls]
	buffer    sendBuffer
	abandoned sync.WaitGroup // operations of freed requests
}

func (o *messaging) open() {
	o.requests = newTable[request](kindRequest)
	o.messages = newTable[probed](kindRequest)
	o.classes = newTable[grequestCalls](kindGrequestClass)
}

// settle waits for sends that no request stands for any more.
func (o *messaging) settle() {
	o.buffer.flush()
	o.abandoned.Wait()
}

// requestPool has requests for reuse, so that sends and receives do not allocate.
type requestPool struct{ sync.Pool }

func (k *requestPool) get() *request {
	if r, ok := k.Get().(*request); ok {
		return r
	}
	return new(request)
}

func (k *requestPool) put(r *request) {
	*r = request{}
	k.Put(r)
}

// addRequest stores the request of a non-blocking call in the table, and its handle at parameter i.
func (o *messaging) addRequest(a *args, i int, r *request) {
	h := o.requests.add(r)
	if r.start != nil {
		a.p.abi.describeRequest(h)
	}
	a.setHandle(i, h)
}

// request returns the request of a handle. It is nil for MPI_REQUEST_NULL.
func (p *Process) request(h handle) (*request, error) {
	if h == requestNull {
		return nil, nil
	}
	if r := p.requests.get(h); r != nil {
		return r, nil
	}
	if r := p.front.request(p, h); r != nil {
		return r, nil
	}
	return nil, errorf(errRequest, "%#x is not a request", uint32(h))
}

// removeRequest ends a handle.
func (p *Process) removeRequest(h handle) {
	if !p.front.remove(h) {
		p.requests.remove(h)
	}
}

// own makes the owner of the request the owner of errors of a call.
func (r *request) own(a *args) {
	if r.comm != nil {
		a.owner = r.comm
	} else if r.owner != nil {
		a.owner = r.owner
	}
}

// inactive reports whether the request is persistent and not started: calls that wait and
// test treat it as a null request, but for its handle.
func (r *request) inactive() bool { return r == nil || r.start != nil && !r.active }

// poll reports whether the operation is complete.
func (r *request) poll() bool {
	if r.over {
		return true
	}
	if r.op != nil {
		if !r.op.ready() {
			return false
		}
		r.conclude(r.op.result())
		return true
	}
	st, done, err := r.Test()
	if done {
		r.conclude(st, err)
	}
	return done
}

// await waits until the operation is complete.
func (r *request) await(p *Process) {
	if r.over {
		return
	}
	if r.op == nil {
		r.conclude(r.Wait())
		return
	}
	for pause := (pause{p: p}); !r.poll(); {
		pause.wait()
	}
}

// conclude stores the result of the operation.
func (r *request) conclude(st mpi.Status, err error) {
	if r.send && !st.Cancelled {
		r.status = emptyStatus
	} else {
		r.status = newStatus(st)
	}
	if r.landing != nil {
		err = r.landing.receive(st.Bytes, err)
	}
	if r.done != nil {
		if e := r.done(); err == nil {
			err = e
		}
	}
	r.over, r.err = true, err
}

// take completes the request for the program, after poll returned true: the request is freed,
// or inactive again if it is persistent.
func (p *Process) take(at handleAt, r *request) (status, error) {
	st, err := r.status, r.err
	if q, ok := r.op.(querier); ok {
		err = q.query(&st)
	}
	if r.start != nil {
		r.active, r.over, r.err = false, false, nil
		return st, err
	}
	p.removeRequest(at.get())
	at.set(requestNull)
	if f, ok := r.op.(releaser); ok {
		if e := f.release(); err == nil {
			err = e
		}
	}
	p.spare.put(r)
	return st, err
}

// pause waits between looks at operations that no mpi.Request stands for. Meanwhile messages
// move, because other ranks may depend on it.
type pause struct {
	p     *Process
	looks int
}

func (w *pause) wait() {
	w.p.progress()
	if w.looks++; w.looks < 200 {
		runtime.Gosched()
	} else {
		time.Sleep(20 * time.Microsecond)
	}
}

// progress moves messages.
func (p *Process) progress() {
	_, _, _ = p.self.Comm.Iprobe(0, mpi.MaxTag) // only for its effect
}
