package core

// Calls that wait for requests and test them (MPI-4.1 sections 3.7.3 and 3.7.5). All of them
// look with poll or await, and complete with take.

import (
	"slices"

	"github.com/muster-mpi/muster/mpi"
)

func completion() map[string]handler {
	return map[string]handler{
		"Wait":               (*Process).wait,
		"Waitall":            (*Process).waitall,
		"Waitany":            (*Process).waitany,
		"Waitsome":           (*Process).waitsome,
		"Test":               (*Process).test,
		"Testall":            (*Process).testall,
		"Testany":            (*Process).testany,
		"Testsome":           (*Process).testsome,
		"Request_free":       (*Process).requestFree,
		"Request_get_status": (*Process).requestGetStatus,

		"Request_get_status_all":  (*Process).statusOfAll,
		"Request_get_status_any":  (*Process).statusOfAny,
		"Request_get_status_some": (*Process).statusOfSome,
		"Cancel":                  (*Process).cancel,
	}
}

func (p *Process) wait(a *args) error {
	at, r := a.request(0)
	if a.err != nil {
		return a.err
	}
	if r.inactive() {
		a.setStatus(1, emptyStatus)
		return nil
	}
	r.own(a)
	r.await(p)
	st, err := p.take(at, r)
	a.setStatus(1, st)
	return err
}

func (p *Process) test(a *args) error {
	at, r := a.request(0)
	if a.err != nil {
		return a.err
	}
	if r.inactive() {
		a.setFlag(1, true)
		a.setStatus(2, emptyStatus)
		return nil
	}
	r.own(a)
	if !r.poll() {
		if r.op != nil { // a program that only tests must see its messages move
			p.progress()
		}
		a.setFlag(1, false)
		return nil
	}
	st, err := p.take(at, r)
	a.setFlag(1, true)
	a.setStatus(2, st)
	return err
}

// request returns the request whose handle is at the address of parameter i, which is nil
// for a null request, and that address.
func (a *args) request(i int) (handleAt, *request) {
	if a.addr(i) == 0 {
		a.fail(errorf(errArg, "the address of the request is NULL"))
		return handleAt{}, nil
	}
	h := a.handleAt(i)
	r, err := a.p.request(h.get())
	if err != nil {
		a.fail(err)
	}
	return h, r
}

// batch is the array of requests of a call, and where the statuses go.
type batch struct {
	p        *Process
	a        *args
	handles  handleArray
	statuses uintptr
}

// batch decodes the number of requests, their array, and the array of statuses.
func (a *args) batch(statuses int) batch {
	n := a.count(0)
	if n > 0 && a.addr(1) == 0 {
		a.fail(errorf(errArg, "the array of requests is NULL"))
		n = 0
	}
	b := batch{p: a.p, a: a, handles: a.handles(1, n), statuses: a.addr(statuses)}
	for i := range n {
		if _, err := a.p.request(b.handles.at(i).get()); err != nil {
			a.fail(err)
		}
	}
	return b
}

// get returns request i, or nil if it is null or inactive.
func (b *batch) get(i int) *request {
	r, _ := b.p.request(b.handles.at(i).get())
	if r.inactive() {
		return nil
	}
	return r
}

// setStatus stores the status at position i, with its error field if the call returns
// MPI_ERR_IN_STATUS.
func (b *batch) setStatus(i int, st status, failed bool) {
	if b.statuses == 0 || b.statuses == ignoreStatus {
		return
	}
	addr := b.statusAddress(i)
	b.p.abi.setStatus(addr, st)
	if failed {
		b.p.abi.setError(addr, st.err)
	}
}

func (b *batch) statusAddress(i int) uintptr { return b.statuses + uintptr(i)*b.p.abi.status.size }

// statusResult is the result of a request, for the array of statuses.
type statusResult struct {
	index  int
	status status
	err    error
}

// take completes request i.
func (b *batch) take(i int, r *request) statusResult {
	var owner args
	r.own(&owner)
	st, err := b.p.take(b.handles.at(i), r)
	if err != nil && owner.owner != nil {
		b.a.owner = owner.owner
	}
	return statusResult{i, st, err}
}

// store stores results. If one is an error, all error fields are set (MPI-4.1 section 3.7.5).
func (b *batch) store(results []statusResult) error {
	if !slices.ContainsFunc(results, func(r statusResult) bool { return r.err != nil }) {
		for k, r := range results {
			b.setStatus(k, r.status, false)
		}
		return nil
	}
	for k, r := range results {
		if r.err != nil {
			c, code := classify(r.err)
			if code == 0 {
				code = b.p.abi.numberFor(numberCode, b.p.codes.add(c, r.err.Error()))
			}
			r.status.err = code
		} else {
			r.status.err = 0
		}
		b.setStatus(k, r.status, true)
	}
	return errorf(errInStatus, "a request failed: %v", firstError(results))
}

func firstError(results []statusResult) error {
	for _, r := range results {
		if r.err != nil {
			return r.err
		}
	}
	return nil
}

func (p *Process) waitall(a *args) error {
	b := a.batch(2)
	if a.err != nil {
		return a.err
	}
	for i := range b.handles.n {
		r := b.get(i)
		if r == nil {
			b.setStatus(i, emptyStatus, false)
			continue
		}
		r.await(p)
		if r.err != nil || r.op != nil {
			return b.waitRest(i)
		}
		st, _ := p.take(b.handles.at(i), r)
		b.setStatus(i, st, false)
	}
	return nil
}

// waitRest is Waitall from request first on, where one may have failed: all statuses get an
// error field.
func (b *batch) waitRest(first int) error {
	results := make([]statusResult, b.handles.n)
	for i := range results {
		results[i] = statusResult{index: i, status: emptyStatus}
		if i < first {
			if b.statuses != 0 && b.statuses != ignoreStatus {
				results[i].status = b.p.abi.statusAt(b.statusAddress(i))
			}
			continue
		}
		if r := b.get(i); r != nil {
			r.await(b.p)
			results[i] = b.take(i, r)
		}
	}
	return b.store(results)
}

func (p *Process) testall(a *args) error {
	b := a.batch(3)
	if a.err != nil {
		return a.err
	}
	all := true
	for i := range b.handles.n {
		if r := b.get(i); r != nil && !r.poll() {
			all = false // look at the others too: each look moves messages
		}
	}
	a.setFlag(2, all)
	if !all {
		return nil
	}
	return b.waitRest(0)
}

func (p *Process) waitany(a *args) error {
	b := a.batch(3)
	if a.err != nil {
		return a.err
	}
	return b.one(2, 3, b.awaitOne())
}

func (p *Process) testany(a *args) error {
	b := a.batch(4)
	if a.err != nil {
		return a.err
	}
	i, active := b.look()
	a.setFlag(3, i != undefined || !active)
	if i == undefined && active {
		a.setInt(2, undefined)
		return nil
	}
	return b.one(2, 4, i)
}

// one completes request i for Waitany and Testany. It is undefined if no request is active.
func (b *batch) one(index, statusAt, i int) error {
	b.a.setInt(index, i)
	if i == undefined {
		b.a.setStatus(statusAt, emptyStatus)
		return nil
	}
	got := b.take(i, b.get(i))
	b.a.setStatus(statusAt, got.status)
	return got.err
}

// look returns the first complete request, or undefined, and whether a request is active.
func (b *batch) look() (i int, active bool) {
	for i := range b.handles.n {
		r := b.get(i)
		if r == nil {
			continue
		}
		active = true
		if r.poll() {
			return i, true
		}
	}
	return undefined, active
}

// awaitOne waits until a request is complete and returns its index. It is undefined if no
// request is active.
func (b *batch) awaitOne() int {
	for pause := (pause{p: b.p}); ; {
		i, active := b.look()
		if i != undefined || !active {
			return i
		}
		if !b.block() {
			pause.wait()
		}
	}
}

// block waits in package mpi until one of the requests may be complete. It returns false at
// once if one of them is not an mpi.Request alone.
func (b *batch) block() bool {
	requests := make([]mpi.Request, 0, b.handles.n)
	waiting := make([]*request, 0, b.handles.n)
	for i := range b.handles.n {
		r := b.get(i)
		if r == nil {
			continue
		}
		if r.op != nil {
			return false
		}
		requests = append(requests, r.Request)
		waiting = append(waiting, r)
	}
	if i, st, err := mpi.WaitAny(requests...); i >= 0 {
		waiting[i].conclude(st, err)
	}
	return true
}

func (p *Process) waitsome(a *args) error {
	return p.some(a, func(b *batch) (int, bool) {
		i := b.awaitOne()
		return i, i != undefined
	})
}

func (p *Process) testsome(a *args) error { return p.some(a, (*batch).look) }

// some completes all complete requests. first returns one of them, or undefined, and whether
// a request is active.
func (p *Process) some(a *args, first func(*batch) (int, bool)) error {
	b := a.batch(4)
	if a.err != nil {
		return a.err
	}
	switch i, active := first(&b); {
	case !active:
		a.setInt(2, undefined)
		return nil
	case i == undefined:
		a.setInt(2, 0)
		return nil
	}
	var results []statusResult
	for i := range b.handles.n {
		if r := b.get(i); r != nil && r.poll() {
			results = append(results, b.take(i, r))
		}
	}
	a.setInt(2, len(results))
	indices := memory[int32](a.addr(3), len(results))
	for k, r := range results {
		indices[k] = int32(r.index)
	}
	return b.store(results)
}

// requestFree is MPI_Request_free: the operation goes on.
func (p *Process) requestFree(a *args) error {
	at, r := a.request(0)
	if a.err != nil {
		return a.err
	}
	if r == nil {
		return errorf(errRequest, "the request is MPI_REQUEST_NULL")
	}
	r.own(a)
	h := at.get()
	at.set(requestNull)
	if !r.inactive() && !r.poll() {
		if g, ok := r.op.(*grequest); ok { // its handle is valid until MPI_Grequest_complete
			g.detach()
			return nil
		}
		p.removeRequest(h)
		if r.send {
			p.abandoned.Go(func() { r.await(p) })
		} else {
			go r.await(p) // a message may never arrive
		}
		return nil
	}
	p.removeRequest(h)
	if f, ok := r.op.(releaser); ok {
		return f.release()
	}
	return nil
}

func (p *Process) requestGetStatus(a *args) error {
	r, err := p.request(a.handle(0))
	if err != nil {
		return err
	}
	if a.addr(1) == 0 {
		return errorf(errArg, "the address of the flag is NULL")
	}
	if r.inactive() {
		a.setFlag(1, true)
		a.setStatus(2, emptyStatus)
		return nil
	}
	r.own(a)
	if !r.poll() {
		a.setFlag(1, false)
		return nil
	}
	st := r.status
	if q, ok := r.op.(querier); ok {
		err = q.query(&st)
	}
	a.setFlag(1, true)
	a.setStatus(2, st)
	return err
}

// cancel is MPI_Cancel. Package mpi cancels receives only (MPI-4.1 section 3.8.4 allows it).
func (p *Process) cancel(a *args) error {
	_, r := a.request(0)
	if a.err != nil {
		return a.err
	}
	if r.inactive() {
		return errorf(errRequest, "the request is null or not started")
	}
	r.own(a)
	if c, ok := r.op.(canceler); ok {
		return c.cancel()
	}
	if !r.over {
		r.Cancel()
	}
	return nil
}
