package core

// Making and freeing communicators (MPI-4.1 sections 7.4.2 and 7.4.3).

import (
	"hash/fnv"

	"github.com/muster-mpi/muster/mpi"
)

// addComm stores a new communicator, whose error handler is that of its parent, and its
// handle. A nil communicator is MPI_COMM_NULL.
func (a *args) addComm(i int, c *mpi.Comm, parent *comm) *comm {
	if c == nil {
		a.setHandle(i, commNull)
		return nil
	}
	n := &comm{Comm: c, handler: a.p.retain(parent.handler), session: parent.session}
	n.handle = a.p.comms.add(n)
	a.p.abi.describeComm(n.handle, c)
	a.setHandle(i, n.handle)
	return n
}

func (p *Process) commDup(a *args) error {
	return p.dup(a, 1, func(c *comm) *info { return c.hints.clone() })
}

func (p *Process) commDupWithInfo(a *args) error {
	hints := a.hints(1)
	return p.dup(a, 2, func(*comm) *info { return hints.clone() })
}

// dup is MPI_Comm_dup with its result in position i.
func (p *Process) dup(a *args, i int, hints func(*comm) *info) error {
	c := a.comm(0)
	a.results(i)
	if a.err != nil {
		return nil
	}
	n := &comm{handler: p.retain(c.handler), hints: hints(c), weighted: c.weighted, session: c.session}
	var err error
	switch t := c.topo.(type) {
	case *mpi.Cart:
		var d *mpi.Cart
		if d, err = t.Dup(); err == nil {
			n.Comm, n.topo = d.Comm, d
		}
	case *mpi.Graph:
		var d *mpi.Graph
		if d, err = t.Dup(); err == nil {
			n.Comm, n.topo = d.Comm, d
		}
	case *mpi.DistGraph:
		var d *mpi.DistGraph
		if d, err = t.Dup(); err == nil {
			n.Comm, n.topo = d.Comm, d
		}
	default:
		n.Comm, err = c.Dup()
	}
	if err != nil {
		p.release(n.handler)
		return err
	}
	n.handle = p.comms.add(n)
	p.abi.describeComm(n.handle, c.Comm)
	if err := p.copyAttrs(c, n); err != nil {
		p.comms.remove(n.handle)
		p.release(n.handler)
		return err
	}
	a.setHandle(i, n.handle)
	return nil
}

func (p *Process) commIdup(a *args) error {
	return p.idup(a, 1, func(c *comm) *info { return c.hints.clone() })
}

func (p *Process) commIdupWithInfo(a *args) error {
	hints := a.hints(1)
	return p.idup(a, 2, func(*comm) *info { return hints.clone() })
}

// idup is MPI_Comm_idup with its result in position i. The attributes are copied by the call
// itself, as they are then (MPI-4.1 section 7.4.2).
func (p *Process) idup(a *args, i int, hints func(*comm) *info) error {
	c := a.comm(0)
	a.results(i, i+1)
	if a.err != nil {
		return nil
	}
	n := &comm{handler: p.retain(c.handler), hints: hints(c), weighted: c.weighted, session: c.session}
	n.handle = p.comms.add(n)
	p.abi.describeComm(n.handle, c.Comm)
	if err := p.copyAttrs(c, n); err != nil {
		p.comms.remove(n.handle)
		p.release(n.handler)
		return err
	}
	var r mpi.Request
	switch t := c.topo.(type) {
	case *mpi.Cart:
		var d *mpi.Cart
		if d, r = t.Idup(); d != nil {
			n.Comm, n.topo = d.Comm, d
		}
	case *mpi.Graph:
		var d *mpi.Graph
		if d, r = t.Idup(); d != nil {
			n.Comm, n.topo = d.Comm, d
		}
	case *mpi.DistGraph:
		var d *mpi.DistGraph
		if d, r = t.Idup(); d != nil {
			n.Comm, n.topo = d.Comm, d
		}
	default:
		n.Comm, r = c.Idup()
	}
	a.setHandle(i, n.handle)
	a.setHandle(i+1, p.requests.add(&request{Request: r, comm: c, send: true}))
	return nil
}

func (p *Process) commSplit(a *args) error {
	c, color, key := a.comm(0), a.int(1), a.int(2)
	if color < 0 && color != undefined {
		return errorf(errArg, "the color %d is negative and not MPI_UNDEFINED", color)
	}
	n, err := c.Split(color, key)
	if err != nil {
		return err
	}
	a.addComm(3, n, c)
	return nil
}

// Kinds of MPI_Comm_split_type.
const (
	splitShared       = 1
	splitGuided       = 2
	splitUnguided     = 3
	splitNeighborhood = 4
)

// commSplitType is MPI_Comm_split_type (MPI-4.1 section 7.4.2). The only hardware that is
// known to bind ranks together is a node; for the split types of hardware the ranks that
// cannot be told apart get MPI_COMM_NULL, as the standard allows.
func (p *Process) commSplitType(a *args) error {
	c, kind, key, hints := a.comm(0), a.int(1), a.int(2), a.hints(3)
	var n *mpi.Comm
	var err error
	switch kind {
	case splitShared:
		n, err = c.SplitType(mpi.ByNode, key)
	case splitGuided:
		resource, ok := hints.get("mpi_hw_resource_type")
		if ok && resource == "mpi_shared_memory" {
			n, err = c.SplitType(mpi.ByNode, key)
		} else {
			n, err = c.Split(mpi.Undefined, key)
		}
	case splitNeighborhood: // of ranks that see the same folder: those of a node do
		folder, ok := hints.get("nbhd_common_dirname")
		if c.IsInter() { // the groups cannot compare their hints in one call
			ok = false
		} else if ok, err = sameHint(c.Comm, folder, ok); err != nil {
			return err
		}
		if ok {
			n, err = c.SplitType(mpi.ByNode, key)
		} else {
			n, err = c.Split(mpi.Undefined, key)
		}
	case splitUnguided, undefined:
		n, err = c.Split(mpi.Undefined, key)
	default:
		return errorf(errArg, "the split type %d is unknown", kind)
	}
	if err != nil {
		return err
	}
	a.addComm(4, n, c)
	return nil
}

// sameHint reports whether all ranks of c have a hint, with the same value.
func sameHint(c *mpi.Comm, value string, ok bool) (bool, error) {
	mine := int64(-1)
	if ok {
		h := fnv.New32a()
		h.Write([]byte(value))
		mine = int64(h.Sum32())
	}
	all := []int64{mine, -mine}
	err := mpi.Allreduce(c, nil, all, mpi.Max)
	return ok && all[0] == -all[1], err
}

func (p *Process) commCreate(a *args) error {
	c, g := a.comm(0), a.group(1)
	n, err := c.Create(g)
	if err != nil {
		return err
	}
	a.addComm(2, n, c)
	return nil
}

func (p *Process) commCreateGroup(a *args) error {
	c, g, tag := a.intra(0), a.group(1), a.int(2)
	if tag < 0 {
		return errorf(errTag, "the tag %d is negative", tag)
	}
	if g.Rank() == mpi.Undefined {
		a.setHandle(3, commNull)
		return nil
	}
	n, err := c.CreateGroup(g, tag)
	if err != nil {
		return err
	}
	a.addComm(3, n, c)
	return nil
}

// freeComm is the handler of MPI_Comm_free and MPI_Comm_disconnect. Package mpi completes what is under
// way.
func freeComm(free func(*mpi.Comm) error) handler {
	return func(p *Process, a *args) error {
		at := a.handleAt(0)
		c := p.comm(at.get())
		if c == nil {
			return errorf(errComm, "%#x is not a communicator", uint32(at.get()))
		}
		a.owner = c
		if c == p.all || c == p.self {
			return errorf(errComm, "%s cannot be freed", c.label)
		}
		if err := p.deleteAttrs(c); err != nil {
			return err
		}
		c.buffer.flush()
		if err := free(c.Comm); err != nil {
			return err
		}
		p.parent.CompareAndSwap(c, nil)
		p.front.forget(at.get())
		p.comms.remove(at.get())
		p.release(c.handler)
		at.set(commNull)
		return nil
	}
}
