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
	buffer  sendBuffer
	session *session     // from whose process sets it was derived; nil: none
	topo    mpi.Topology // nil: none
	// weighted says that the program gave the weights of a distributed graph.
	weighted bool
	acked    []int         // failed ranks that the program has acknowledged (comm_failure.go)
	agreed   chan struct{} // closed at the end of the last MPIX_Comm_iagree; nil: none
}

func (c *comm) errhandler() *errhandler { return c.handler }
func (c *comm) self() (handle, uintptr) { return c.handle, 0 }
func (c *comm) nameField() *string      { return &c.label }

func communicators() map[string]handler {
	return map[string]handler{
		"Comm_size":              query((*args).comm, (*comm).Size),
		"Comm_rank":              query((*args).comm, (*comm).Rank),
		"Comm_compare":           (*Process).commCompare,
		"Comm_get_name":          getName((*args).comm),
		"Comm_set_name":          setName((*args).comm),
		"Comm_get_info":          copyInfo((*args).comm, func(c *comm) *info { return c.hints }),
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
		"Comm_free":              freeComm((*mpi.Comm).Free),
	}
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
		a.fail(errorf(errComm, "%s is an inter-communicator", c.Name()))
		return nil
	}
	return c
}

// inter returns an inter-communicator.
func (a *args) inter(i int) *comm {
	c := a.comm(i)
	if c != nil && !c.IsInter() {
		a.fail(errorf(errComm, "%s is not an inter-communicator", c.Name()))
		return nil
	}
	return c
}

func (p *Process) commCompare(a *args) error {
	c, d := a.comm(0), a.comm(1)
	a.setInt(2, int(c.Compare(d.Comm)))
	return nil
}

// clip returns the first n bytes of a string.
func clip(s string, n int) string { return s[:min(len(s), n)] }

func (p *Process) commSetInfo(a *args) error {
	c, f := a.comm(0), a.info(1)
	if c.hints == nil {
		c.hints = &info{}
	}
	for _, e := range f.pairs() {
		c.hints.set(e.key, e.value)
	}
	return nil
}
