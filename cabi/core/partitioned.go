package core

// Partitioned messages (MPI-4.1 chapter 4).

import (
	"sync"

	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/mpi"
)

func partitionedCalls() map[string]handler {
	return map[string]handler{
		"Psend_init":   (*Process).psendInit,
		"Precv_init":   (*Process).precvInit,
		"Pready":       (*Process).pready,
		"Pready_range": (*Process).preadyRange,
		"Pready_list":  (*Process).preadyList,
		"Parrived":     (*Process).testPartition,
	}
}

// partitioned is the operation of a partitioned message. If its datatype is not contiguous,
// each partition is packed when it is ready and unpacked when it has arrived.
type partitioned struct {
	*mpi.Partitioned
	parts int
	send  bool

	view     dtype.View
	packed   []byte // nil if the memory of the program is used
	mu       sync.Mutex
	unpacked []bool // partitions

	status mpi.Status // after ready returned true
	err    error
}

func (p *Process) psendInit(a *args) error {
	return p.partitionedInit(a, true, mpi.PsendInit[byte])
}

func (p *Process) precvInit(a *args) error {
	return p.partitionedInit(a, false, mpi.PrecvInit[byte])
}

type partitionedInitCall func(c *mpi.Comm, buf []byte, partitions, peer, tag int) *mpi.Partitioned

// partitionedInit decodes buffer, partitions, count of each, datatype, peer, tag, communicator.
func (p *Process) partitionedInit(a *args, send bool, prepare partitionedInitCall) error {
	c := a.comm(6)
	parts, count, typ := a.int(1), a.count(2), a.datatype(3)
	peer, tag := a.source(c, 4, 5)
	switch {
	case a.err != nil:
		return a.err
	case parts < 0:
		return errorf(errArg, "the number of partitions is %d", parts)
	case peer == mpi.AnySource:
		return errorf(errRank, "a partitioned message has one source")
	case tag == mpi.AnyTag:
		return errorf(errTag, "a partitioned message has one tag")
	}
	v, err := typ.view(a.addr(0), parts*count)
	if err != nil {
		return err
	}
	op := &partitioned{parts: parts, send: send, view: v}
	buf, flat := v.Contiguous()
	if !flat {
		op.packed = make([]byte, v.Len())
		op.unpacked = make([]bool, parts)
		buf = op.packed
	}
	op.Partitioned = prepare(c.Comm, buf, parts, peer, tag)
	p.addRequest(a, 8, &request{op: op, comm: c, send: send, start: func(*request) error { return op.start() }})
	return nil
}

func (o *partitioned) start() error {
	o.mu.Lock()
	clear(o.unpacked)
	o.mu.Unlock()
	return o.Start()
}

func (o *partitioned) ready() bool {
	st, done, err := o.Test()
	if !done {
		return false
	}
	o.status, o.err = st, err
	if !o.send && err == nil {
		for i := range o.parts {
			o.unpack(i)
		}
	}
	return true
}

func (o *partitioned) result() (mpi.Status, error) { return o.status, o.err }

// part returns the place of a partition in the packed message.
func (o *partitioned) part(i int) (b []byte, pos int64) {
	n := len(o.packed) / o.parts
	return o.packed[i*n : (i+1)*n], int64(i * n)
}

// unpack unpacks a partition, once: the program may have changed it since.
func (o *partitioned) unpack(i int) {
	if o.packed == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.unpacked[i] {
		o.unpacked[i] = true
		b, pos := o.part(i)
		o.view.Unpack(b, pos)
	}
}

// sendPart sends a partition.
func (o *partitioned) sendPart(i int) error {
	if o.packed != nil && o.send && i >= 0 && i < o.parts {
		b, pos := o.part(i)
		o.view.Pack(b, pos)
	}
	return o.Ready(i)
}

// partitionedRequest returns the partitioned request of parameter i.
func (a *args) partitionedRequest(i int) (*partitioned, *request) {
	if r := a.p.requests.get(a.handle(i)); r != nil {
		if o, ok := r.op.(*partitioned); ok {
			r.own(a)
			return o, r
		}
	}
	a.fail(errorf(errRequest, "%#x is not a request of a partitioned message", uint32(a.handle(i))))
	return nil, nil
}

// sendParts sends partitions of the active request of parameter i.
func (a *args) sendParts(i int, parts []int) error {
	o, r := a.partitionedRequest(i)
	if a.err != nil {
		return a.err
	}
	if r.inactive() {
		return errorf(errRequest, "the request is not started")
	}
	for _, k := range parts {
		if err := o.sendPart(k); err != nil {
			return err
		}
	}
	return nil
}

func (p *Process) pready(a *args) error { return a.sendParts(1, []int{a.int(0)}) }

func (p *Process) preadyList(a *args) error { return a.sendParts(2, a.shorts(1, a.count(0))) }

func (p *Process) preadyRange(a *args) error {
	lo, hi := a.int(0), a.int(1)
	if lo > hi {
		return errorf(errArg, "the range %d to %d is empty", lo, hi)
	}
	o, _ := a.partitionedRequest(2)
	if a.err != nil {
		return a.err
	}
	if lo < 0 || hi >= o.parts {
		return errorf(errArg, "the range %d to %d is not in the %d partitions", lo, hi, o.parts)
	}
	parts := make([]int, 0, hi-lo+1)
	for i := lo; i <= hi; i++ {
		parts = append(parts, i)
	}
	return a.sendParts(2, parts)
}

func (p *Process) testPartition(a *args) error {
	if a.handle(0) == requestNull {
		a.setFlag(2, true)
		return nil
	}
	o, r := a.partitionedRequest(0)
	if a.err != nil {
		return a.err
	}
	if r.inactive() {
		a.setFlag(2, true)
		return nil
	}
	arrived, err := o.Arrived(a.int(1))
	if err != nil {
		return err
	}
	if arrived {
		o.unpack(a.int(1))
	}
	a.setFlag(2, arrived)
	return nil
}
