package core

// Collective calls (MPI-4.1 chapter 6). Each has three forms: blocking, non-blocking and
// persistent. One method serves all three; collCall has what differs.

import (
	"strings"

	"github.com/muster-mpi/muster/mpi"
)

// callForm is a form of a collective call.
type callForm int

const (
	blocking callForm = iota
	started           // MPI_Ibcast
	prepared          // MPI_Bcast_init
)

// collective is a collective function. The other forms have further parameters after those
// of the blocking one: the request, and before it the info object of persistent calls.
type collective struct {
	name   string
	params int
	call   func(p *Process, a *args, x *collCall) error
}

func collectives() map[string]handler {
	m := map[string]handler{}
	all := []collective{
		{"Barrier", 1, (*Process).barrier},
		{"Bcast", 5, (*Process).bcast},
		{"Gather", 8, (*Process).gather},
		{"Gatherv", 9, (*Process).gatherv},
		{"Scatter", 8, (*Process).scatter},
		{"Scatterv", 9, (*Process).scatterv},
		{"Allgather", 7, (*Process).allgather},
		{"Allgatherv", 8, (*Process).allgatherv},
		{"Alltoall", 7, (*Process).alltoall},
		{"Alltoallv", 9, (*Process).alltoallv},
		{"Alltoallw", 9, (*Process).alltoallw},
		{"Reduce", 7, (*Process).reduce},
		{"Allreduce", 6, (*Process).allreduce},
		{"Reduce_scatter", 6, (*Process).reduceScatter},
		{"Reduce_scatter_block", 6, (*Process).reduceScatterBlock},
		{"Scan", 6, (*Process).scan},
		{"Exscan", 6, (*Process).exscan},
	}
	for _, k := range append(all, neighborhoods()...) {
		m[k.name] = k.handler(blocking)
		m["I"+strings.ToLower(k.name)] = k.handler(started)
		m[k.name+"_init"] = k.handler(prepared)
	}
	return m
}

func (k collective) handler(f callForm) handler {
	at := k.params
	if f == prepared {
		at++
	}
	return func(p *Process, a *args) error {
		return k.call(p, a, &collCall{p: p, a: a, form: f, request: at})
	}
}

// collCall is a collective call in one of its forms.
type collCall struct {
	p       *Process
	a       *args
	form    callForm
	request int // position of the request
	c       *comm
	pack    []func() // called before each start
	unpack  []func() // called when the call is complete
	late    error    // of the call, once it is complete: the other ranks need this one
}

// comm decodes the communicator. Every call begins with it, so that it gets the errors.
func (x *collCall) comm(i int) *comm {
	x.c = x.a.comm(i)
	return x.c
}

// run makes the call in its form. The functions do not escape, so that a call with
// contiguous buffers allocates nothing for them.
func (x *collCall) run(call func() error, start func() mpi.Request, prepare func() *mpi.Persistent) error {
	switch x.form {
	case blocking:
		x.packAll()
		if err := call(); err != nil {
			return err
		}
		return x.unpackAll()
	case started:
		x.packAll()
		r := &request{Request: start(), comm: x.c, send: true}
		if x.unpack != nil || x.late != nil {
			r.done = x.unpackAll
		}
		x.p.addRequest(x.a, x.request, r)
		return nil
	}
	// The request of a persistent call keeps its buffers and their copies.
	operation := prepare()
	r := &request{comm: x.c, send: true, start: func(r *request) error {
		x.packAll()
		r.Request = operation.Start()
		return nil
	}}
	if x.unpack != nil || x.late != nil {
		r.done = x.unpackAll
	}
	x.p.addRequest(x.a, x.request, r)
	return nil
}

func (x *collCall) packAll() {
	for _, pack := range x.pack {
		pack()
	}
}

func (x *collCall) unpackAll() error {
	for _, unpack := range x.unpack {
		unpack()
	}
	return x.late
}

// peers returns the number of ranks that the blocks of a call belong to: those of the other
// group, if there are two.
func (x *collCall) peers() int {
	if x.c.IsInter() {
		return x.c.RemoteSize()
	}
	return x.c.Size()
}

// role is what a rank does in a call with a root.
type role struct {
	root    int  // as package mpi numbers it
	isRoot  bool // it has the data of all
	isOther bool // it has the data of one rank
}

// role decodes a root (MPI-4.1 section 6.2.3).
func (x *collCall) role(i int) role {
	r := x.a.int(i)
	if x.c == nil {
		return role{}
	}
	if !x.c.IsInter() {
		if r < 0 || r >= x.c.Size() {
			x.a.fail(errorf(errRoot, "the root is %d; the communicator has ranks 0 to %d", r, x.c.Size()-1))
		}
		return role{root: r, isRoot: r == x.c.Rank(), isOther: true}
	}
	switch {
	case r == root:
		return role{root: mpi.Root, isRoot: true}
	case r == procNull:
		return role{root: mpi.ProcNull}
	case r < 0 || r >= x.c.RemoteSize():
		x.a.fail(errorf(errRoot, "the root is %d; the other group has ranks 0 to %d", r, x.c.RemoteSize()-1))
	}
	return role{root: r, isOther: true}
}

func (p *Process) barrier(a *args, x *collCall) error {
	c := x.comm(0)
	if a.err != nil {
		return a.err
	}
	return x.run(
		c.Comm.Barrier,
		c.Comm.Ibarrier,
		c.Comm.BarrierInit)
}

func (p *Process) bcast(a *args, x *collCall) error {
	c, r := x.comm(4), x.role(3)
	var b []byte
	if r.isRoot || r.isOther {
		use := writes
		if r.isRoot {
			use = reads
		}
		b = x.buffer(use, 0, 1, 2, 1)
	}
	if a.err != nil {
		return a.err
	}
	return x.run(
		func() error { return mpi.Bcast(c.Comm, b, r.root) },
		func() mpi.Request { return mpi.Ibcast(c.Comm, b, r.root) },
		func() *mpi.Persistent { return mpi.BcastInit(c.Comm, b, r.root) })
}
