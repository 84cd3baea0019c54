package core

// Performance variables and categories of the tool information interface (MPI-4.1 sections
// 15.3.7 and 15.3.9). The variables are counters of the library, which run always and cannot
// be written.

import (
	"slices"

	"github.com/muster-mpi/muster/prof"
)

// toolCounter is MPI_T_PVAR_CLASS_COUNTER.
const toolCounter = 246

// toolCategories are the categories: the first has the control variables, the second the
// performance variables.
var toolCategories = []struct{ name, text string }{
	{"settings", "the settings of Muster, which are read when the job starts"},
	{"counters", "what the calling rank has sent and received"},
}

func (p *Process) pvarInfo(a *args) error {
	i := a.toolIndex(0, len(p.tools.pvars))
	if a.err != nil {
		return a.err
	}
	a.setName(1, string(p.tools.pvars[i]))
	a.setInt(3, toolVerbosity)
	a.setInt(4, toolCounter)
	a.setHandle(5, typeUnsignedLLong)
	set(a.addr(6), uintptr(0))
	a.setName(7, "a counter of package prof")
	a.setInt(9, toolNoObject)
	a.setInt(10, 1) // read only
	a.setInt(11, 1) // continuous
	a.setInt(12, 0) // not read and reset atomically
	return nil
}

func (p *Process) pvarIndex(a *args) error {
	name := a.text(0)
	i := slices.IndexFunc(p.tools.pvars, func(v prof.Name) bool { return string(v) == name })
	if a.int(1) != toolCounter {
		i = -1
	}
	return a.setIndex(2, i)
}

// noVariable is the variable of the handle of a session.
const noVariable = -1

func (p *Process) pvarSession(a *args) error {
	set(a.addr(0), p.toolAdd(noVariable, 0))
	return nil
}

// session checks the session at parameter 0.
func (p *Process) toolSession(a *args) error {
	if i, ok := p.tools.handles[a.addr(0)]; !ok || i != noVariable {
		return toolError(toolInvalidSession)
	}
	return nil
}

func (p *Process) pvarAlloc(a *args) error {
	if err := p.toolSession(a); err != nil {
		return err
	}
	i := a.toolIndex(1, len(p.tools.pvars))
	if a.err != nil {
		return a.err
	}
	set(a.addr(3), p.toolAdd(i, a.addr(0)))
	a.setInt(4, 1)
	return nil
}

// pvarOf returns the variable of the handle at parameter 1.
func (p *Process) pvarOf(a *args) (int, error) {
	if err := p.toolSession(a); err != nil {
		return 0, err
	}
	i, ok := p.tools.handles[a.addr(1)]
	if !ok || i < 0 || p.tools.owners[a.addr(1)] != a.addr(0) {
		return 0, toolError(toolInvalidHandle)
	}
	return i, nil
}

func (p *Process) pvarRead(a *args) error {
	i, err := p.pvarOf(a)
	if err != nil {
		return err
	}
	value := uint64(0) // before MPI_Init
	if p.state.Load() == running {
		c := p.world.Profile()
		value = c.Of(p.tools.pvars[i])
	}
	set(a.addr(2), value)
	return nil
}

// pvarFixed refuses to change a variable. A change of all variables of a session affects
// none.
func (p *Process) pvarFixed(a *args, code int32) error {
	if err := p.toolSession(a); err != nil {
		return err
	}
	if _, one := p.tools.handles[a.addr(1)]; !one {
		return nil // MPI_T_PVAR_ALL_HANDLES
	}
	return toolError(code)
}

func (p *Process) categoryInfo(a *args) error {
	i := a.toolIndex(0, len(toolCategories))
	if a.err != nil {
		return a.err
	}
	a.setName(1, toolCategories[i].name)
	a.setName(3, toolCategories[i].text)
	members := [2]int{}
	members[i] = [...]int{len(p.tools.cvars), len(p.tools.pvars)}[i]
	a.setInt(5, members[0])
	a.setInt(6, members[1])
	a.setInt(7, 0)
	return nil
}

func (p *Process) categoryIndex(a *args) error {
	name := a.text(0)
	return a.setIndex(1, slices.IndexFunc(toolCategories, func(c struct{ name, text string }) bool { return c.name == name }))
}

// categoryList stores the indices of the n members of a category, which only one category
// has.
func (p *Process) categoryList(a *args, has, n int) error {
	i := a.toolIndex(0, len(toolCategories))
	if a.err != nil {
		return a.err
	}
	if i != has {
		n = 0
	}
	out := memory[int32](a.addr(2), min(n, a.int(1)))
	for k := range out {
		out[k] = int32(k)
	}
	return nil
}
