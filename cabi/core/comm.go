package core

// Communicators: access and attributes (MPI-4.1 sections 7.4.1, 7.4.3 and 7.8).

import "github.com/muster-mpi/muster/mpi"

// comm is a communicator of the program.
type comm struct {
	*mpi.Comm
	handle  handle
	handler *errhandler
	label   string // the name that the program set
	attrs   attrs
	hints   *info
	topo    mpi.Topology // nil: none
	// weighted says that the program gave the weights of a distributed graph.
	weighted bool
	acked    []int         // failed ranks that the program has acknowledged (comm_failure.go)
	agreed   chan struct{} // closed at the end of the last MPIX_Comm_iagree; nil: none
}

func (c *comm) errhandler() *errhandler { return c.handler }
func (c *comm) self() (handle, uintptr) { return c.handle, 0 }
func (c *comm) title() string           { return c.Name() }

func communicators() map[string]handler {
	return map[string]handler{
		"Comm_size":              (*Process).commSize,
		"Comm_rank":              (*Process).commRank,
		"Comm_compare":           (*Process).commCompare,
		"Comm_get_name":          (*Process).commGetName,
		"Comm_set_name":          (*Process).commSetName,
		"Comm_get_info":          (*Process).commGetInfo,
		"Comm_set_info":          (*Process).commSetInfo,
		"Comm_dup":               (*Process).commDup,
		"Comm_dup_with_info":     (*Process).commDupWithInfo,
		"Comm_idup":              (*Process).commIdup,
		"Comm_idup_with_info":    (*Process).commIdupWithInfo,
		"Comm_split":             (*Process).commSplit,
		"Comm_split_type":        (*Process).commSplitType,
		"Comm_create":            (*Process).commCreate,
		"Comm_create_group":      (*Process).commCreateGroup,
		"Comm_create_from_group": (*Process).commCreateFromGroup,
		"Comm_free":              (*Process).commFree,
		"Comm_disconnect":        (*Process).commFree,
		"Comm_get_parent":        (*Process).commGetParent,
	}
}

// maxObjectName is MPI_MAX_OBJECT_NAME.
const maxObjectName = 128

// openWorld makes the predefined communicators.
func (p *Process) openWorld() {
	p.all = &comm{Comm: p.world.Comm(), handle: commWorld, handler: p.standard.unset, label: "MPI_COMM_WORLD"}
	p.self = &comm{Comm: p.world.Comm().Self(), handle: commSelf, handler: p.standard.unset, label: "MPI_COMM_SELF"}
}

// closeWorld deletes the attributes of MPI_COMM_SELF, with which libraries clean up, before
// anything else (MPI-4.1 section 11.2.4), and then those of MPI_COMM_WORLD.
func (p *Process) closeWorld() error {
	if err := p.deleteAttrs(p.self); err != nil {
		return err
	}
	return p.deleteAttrs(p.all)
}

// comm returns the communicator of a handle, or nil.
func (p *Process) comm(h handle) *comm {
	switch h {
	case commWorld:
		return p.all
	case commSelf:
		return p.self
	}
	return p.comms.get(h)
}

// intra returns a communicator with one group.
func (a *args) intra(i int) *comm {
	c := a.comm(i)
	if c != nil && c.IsInter() {
		a.fail(errorf(errComm, "%s is an inter-communicator", c.title()))
		return nil
	}
	return c
}

// inter returns an inter-communicator.
func (a *args) inter(i int) *comm {
	c := a.comm(i)
	if c != nil && !c.IsInter() {
		a.fail(errorf(errComm, "%s is not an inter-communicator", c.title()))
		return nil
	}
	return c
}

func (p *Process) commSize(a *args) error {
	c := a.comm(0)
	if a.results(1); a.err == nil {
		a.setInt(1, c.Size())
	}
	return nil
}

func (p *Process) commRank(a *args) error {
	c := a.comm(0)
	if a.results(1); a.err == nil {
		a.setInt(1, c.Rank())
	}
	return nil
}

func (p *Process) commCompare(a *args) error {
	c, d := a.comm(0), a.comm(1)
	a.results(2)
	if a.err == nil {
		a.setInt(2, c.Compare(d.Comm))
	}
	return nil
}

func (p *Process) commGetName(a *args) error {
	c := a.comm(0)
	a.results(1, 2)
	if a.err == nil {
		a.setInt(2, a.setText(1, c.label, maxObjectName))
	}
	return nil
}

func (p *Process) commSetName(a *args) error {
	c := a.comm(0)
	a.results(1)
	if a.err == nil {
		c.label = clip(a.text(1), maxObjectName-1)
	}
	return nil
}

// clip returns the first n bytes of a string.
func clip(s string, n int) string { return s[:min(len(s), n)] }

func (p *Process) commGetInfo(a *args) error {
	c := a.comm(0)
	a.results(1)
	if a.err == nil {
		a.setHandle(1, p.infos.add(c.hints.clone()))
	}
	return nil
}

func (p *Process) commSetInfo(a *args) error {
	c, f := a.comm(0), a.info(1)
	if a.err != nil {
		return nil
	}
	if c.hints == nil {
		c.hints = &info{}
	}
	for _, e := range f.pairs() {
		c.hints.set(e.key, e.value)
	}
	return nil
}

// commGetParent is MPI_Comm_get_parent: no program is started by another.
func (p *Process) commGetParent(a *args) error {
	if a.results(0); a.err == nil {
		a.setHandle(0, commNull)
	}
	return nil
}
