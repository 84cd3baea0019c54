package core

// Generalized requests (MPI-4.1 section 13.2): the program performs the operation.

import (
	"sync/atomic"

	"github.com/muster-mpi/muster/mpi"
)

func generalizedRequests() map[string]handler {
	return map[string]handler{
		"Grequest_start":             (*Process).grequestStart,
		"Grequest_complete":          (*Process).grequestComplete,
		"MPIX_Grequest_start":        (*Process).grequestStartPolled,
		"MPIX_Grequest_class_create": (*Process).grequestClass,

		"MPIX_Grequest_class_allocate": (*Process).grequestAllocate,
		"MPII_Grequest_set_lang_f77":   (*Process).grequestFortran,
	}
}

// grequestCalls are the functions of the program for generalized requests; those that are 0
// are not called.
type grequestCalls struct{ query, free, cancel, poll uintptr }

// grequest is the operation of a generalized request.
type grequest struct {
	p        *Process
	calls    grequestCalls
	extra    uint64
	fortran  bool
	memory   uintptr // of the handle, to which the Fortran library of Open MPI writes; or 0
	complete atomic.Bool
	detached atomic.Bool // MPI_Request_free was called first
	released atomic.Bool
	// results of callbacks; on the heap, because stacks move
	status [4]uint64 // as the ABI has it
	code   [1]int32
	flag   [1]int32
}

// call calls a function of the program with the extra state and another argument. Functions
// in Fortran store their result (MPI-4.1 section 13.2).
func (g *grequest) call(fn uintptr, more ...uint64) error {
	if fn == 0 {
		return nil
	}
	argv := append([]uint64{g.extra}, more...)
	var code int32
	if g.inFortran() {
		g.code[0] = 0
		g.p.callback(fn, append(argv, uint64(addressOf(g.code[:])))...)
		code = g.code[0]
	} else {
		code = g.p.callback(fn, argv...)
	}
	if code != 0 {
		return codeError(code)
	}
	return nil
}

func (g *grequest) ready() bool {
	if !g.complete.Load() && g.calls.poll != 0 {
		g.setStatus(emptyStatus)
		_ = g.call(g.calls.poll, uint64(addressOf(g.status[:]))) // it completes the request, or not
	}
	return g.complete.Load()
}

func (g *grequest) result() (mpi.Status, error) { return mpi.Status{}, nil }

// query lets the program fill in the status.
func (g *grequest) query(st *status) error {
	g.setStatus(status{source: undefined, tag: undefined})
	err := g.call(g.calls.query, uint64(addressOf(g.status[:])))
	*st = g.p.abi.statusAt(addressOf(g.status[:]))
	return err
}

func (g *grequest) setStatus(s status) {
	addr := addressOf(g.status[:])
	g.p.abi.setStatus(addr, s)
	g.p.abi.setError(addr, s.err)
}

func (g *grequest) cancel() error {
	g.flag[0] = flag(g.complete.Load())
	if g.inFortran() {
		return g.call(g.calls.cancel, uint64(addressOf(g.flag[:])))
	}
	return g.call(g.calls.cancel, uint64(g.flag[0]))
}

func (g *grequest) release() error {
	if g.released.Swap(true) {
		return nil
	}
	return g.call(g.calls.free)
}

// detach frees the request when it is complete.
func (g *grequest) detach() {
	g.detached.Store(true)
	if g.complete.Load() {
		_ = g.release()
	}
}

func (p *Process) grequestStart(a *args) error {
	calls := grequestCalls{query: a.addr(0), free: a.addr(1), cancel: a.addr(2)}
	p.addGrequest(a, 4, calls, a.v[3])
	return nil
}

func (p *Process) addGrequest(a *args, i int, calls grequestCalls, extra uint64) {
	g := &grequest{p: p, calls: calls, extra: extra}
	p.addRequest(a, i, &request{op: g})
	if g.memory = p.abi.memoryOf(a.handleAt(i).get()); g.memory != 0 {
		set(g.memory+openRequestInC, byte(1))
	}
}

// inFortran reports whether the functions of the program are in Fortran.
func (g *grequest) inFortran() bool {
	return g.fortran || g.memory != 0 && *at[byte](g.memory + openRequestInC) == 0
}

// grequest returns the generalized request of parameter i.
func (a *args) grequest(i int) *grequest {
	if r := a.p.requests.get(a.handle(i)); r != nil {
		if g, ok := r.op.(*grequest); ok {
			return g
		}
	}
	a.fail(errorf(errRequest, "%#x is not a generalized request", uint32(a.handle(i))))
	return nil
}

func (p *Process) grequestComplete(a *args) error {
	g := a.grequest(0)
	if g == nil {
		return a.err
	}
	g.complete.Store(true)
	if g.detached.Load() {
		p.requests.remove(a.handle(0))
		return g.release()
	}
	return nil
}

// grequestFortran says that the functions of a request are in Fortran. libmpichfort.so.12
// calls it.
func (p *Process) grequestFortran(a *args) error {
	if g := a.grequest(0); g != nil {
		g.fortran = true
	}
	return nil
}

// grequestStartPolled is MPIX_Grequest_start of MPICH: the library calls a function of the
// program that looks whether the operation is complete. The function that waits is not used.
func (p *Process) grequestStartPolled(a *args) error {
	p.addGrequest(a, 6, a.grequestCalls(), a.v[5])
	return nil
}

func (a *args) grequestCalls() grequestCalls {
	return grequestCalls{query: a.addr(0), free: a.addr(1), cancel: a.addr(2), poll: a.addr(3)}
}

func (p *Process) grequestClass(a *args) error {
	calls := a.grequestCalls()
	a.setHandle(5, p.classes.add(&calls))
	return nil
}

func (p *Process) grequestAllocate(a *args) error {
	calls := p.classes.get(a.handle(0))
	if calls == nil {
		return errorf(errArg, "%#x is not a class of generalized requests", uint32(a.handle(0)))
	}
	p.addGrequest(a, 2, *calls, a.v[1])
	return nil
}
