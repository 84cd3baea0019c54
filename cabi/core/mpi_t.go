package core

// The tool information interface (MPI-4.1 chapter 15): control variables are the settings of
// Muster, performance variables its counters. Its functions return their own error codes and
// never call an error handler.

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"sync"

	"github.com/muster-mpi/muster/internal/settings"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
)

// Error codes of the interface.
const (
	toolInvalidIndex   = 62
	toolInvalidHandle  = 64
	toolInvalidSession = 67
	toolSetNever       = 69
	toolNoStartStop    = 70
	toolNoWrite        = 71
	toolInvalidName    = 73
	toolNotInitialized = 60
)

// Other numbers of the interface.
const (
	toolVerbosity = 221   // MPI_T_VERBOSITY_USER_BASIC
	toolNoObject  = 9700  // MPI_T_BIND_NO_OBJECT
	toolReadonly  = 60439 // MPI_T_SCOPE_READONLY
	toolRoom      = 512   // for the value of a control variable

	typeChar          handle = 0x4c000101
	typeUnsignedLLong handle = 0x4c000819
)

// tools is the state of the interface.
type tools struct {
	mu      sync.Mutex
	opened  int // MPI_T_init_thread without MPI_T_finalize
	cvars   []cvar
	pvars   []prof.Name
	handles map[uintptr]int // by number: the variable of a handle
	owners  map[uintptr]uintptr
	last    uintptr
}

// cvar is a setting.
type cvar struct{ name, value string }

// toolOwner makes errors of the interface results and nothing else.
type toolOwner struct{ p *Process }

func (o toolOwner) errhandler() *errhandler { return o.p.standard.returns }
func (o toolOwner) self() (handle, uintptr) { return 0, 0 }

func toolError(code int32) error {
	return &failure{code: code, class: errOther, text: "the tool interface refuses the call"}
}

// toolCalls returns the functions, each of which holds the lock of the interface.
func toolCalls() map[string]handler {
	table := map[string]handler{
		"T_finalize":                (*Process).toolFinalize,
		"T_cvar_get_num":            func(p *Process, a *args) error { a.setInt(0, len(p.tools.cvars)); return nil },
		"T_cvar_get_info":           (*Process).cvarInfo,
		"T_cvar_get_index":          (*Process).cvarIndex,
		"T_cvar_handle_alloc":       (*Process).cvarAlloc,
		"T_cvar_handle_free":        func(p *Process, a *args) error { return p.toolFree(a, 0) },
		"T_cvar_read":               (*Process).cvarRead,
		"T_cvar_write":              func(p *Process, a *args) error { return toolError(toolSetNever) },
		"T_pvar_get_num":            func(p *Process, a *args) error { a.setInt(0, len(p.tools.pvars)); return nil },
		"T_pvar_get_info":           (*Process).pvarInfo,
		"T_pvar_get_index":          (*Process).pvarIndex,
		"T_pvar_session_create":     (*Process).pvarSession,
		"T_pvar_session_free":       func(p *Process, a *args) error { return p.toolFree(a, 0) },
		"T_pvar_handle_alloc":       (*Process).pvarAlloc,
		"T_pvar_handle_free":        func(p *Process, a *args) error { return p.toolFree(a, 1) },
		"T_pvar_read":               (*Process).pvarRead,
		"T_pvar_start":              func(p *Process, a *args) error { return p.pvarFixed(a, toolNoStartStop) },
		"T_pvar_stop":               func(p *Process, a *args) error { return p.pvarFixed(a, toolNoStartStop) },
		"T_pvar_reset":              func(p *Process, a *args) error { return p.pvarFixed(a, toolNoWrite) },
		"T_pvar_write":              func(p *Process, a *args) error { return p.pvarFixed(a, toolNoWrite) },
		"T_pvar_readreset":          func(p *Process, a *args) error { return p.pvarFixed(a, toolNoWrite) },
		"T_category_get_num":        func(p *Process, a *args) error { a.setInt(0, len(toolCategories)); return nil },
		"T_category_get_info":       (*Process).categoryInfo,
		"T_category_get_index":      (*Process).categoryIndex,
		"T_category_get_cvars":      func(p *Process, a *args) error { return p.categoryList(a, 0, len(p.tools.cvars)) },
		"T_category_get_pvars":      func(p *Process, a *args) error { return p.categoryList(a, 1, len(p.tools.pvars)) },
		"T_category_get_categories": func(p *Process, a *args) error { return p.categoryList(a, -1, 0) },
		"T_category_get_num_events": func(p *Process, a *args) error { a.setInt(1, 0); return nil },
		"T_category_get_events":     func(p *Process, a *args) error { return p.categoryList(a, -1, 0) },
		"T_category_changed":        func(p *Process, a *args) error { a.setInt(0, 1); return nil },
		"T_enum_get_info":           func(p *Process, a *args) error { return toolError(toolInvalidHandle) },
		"T_enum_get_item":           func(p *Process, a *args) error { return toolError(toolInvalidHandle) },
		"T_event_get_num":           func(p *Process, a *args) error { a.setInt(0, 0); return nil },
		"T_event_get_index":         func(p *Process, a *args) error { return toolError(toolInvalidName) },
		"T_event_get_info":          func(p *Process, a *args) error { return toolError(toolInvalidIndex) },
		"T_source_get_num":          func(p *Process, a *args) error { a.setInt(0, 0); return nil },
		"T_source_get_info":         func(p *Process, a *args) error { return toolError(toolInvalidIndex) },
	}
	for name, call := range table {
		table[name] = func(p *Process, a *args) error {
			a.owner = toolOwner{p}
			p.tools.mu.Lock()
			defer p.tools.mu.Unlock()
			if p.tools.opened == 0 {
				return toolError(toolNotInitialized)
			}
			err := call(p, a)
			if a.err != nil {
				err = a.err
			}
			var f *failure
			if errors.As(err, &f) { // the codes are classes, which ABIs number
				f.code = p.abi.numberFor(numberCode, f.code)
			}
			return err
		}
	}
	table["T_init_thread"] = (*Process).toolInit
	return table
}

// toolInit is MPI_T_init_thread, which may be called before MPI_Init.
func (p *Process) toolInit(a *args) error {
	t := &p.tools
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opened++; t.cvars == nil {
		t.cvars = controlVariables(os.Getenv)
		t.pvars = []prof.Name{prof.MessagesSent, prof.BytesSent, prof.MessagesReceived, prof.BytesReceived}
		t.handles, t.owners = map[uintptr]int{}, map[uintptr]uintptr{}
	}
	a.setInt(1, threadMultiple)
	return nil
}

func (p *Process) toolFinalize(a *args) error {
	p.tools.opened--
	return nil
}

// controlVariables lists the fields of mpi.Config by the names of their environment variables.
func controlVariables(getenv func(string) string) (list []cvar) {
	for _, f := range settings.Fields(&mpi.Config{}) {
		value := cmp.Or(getenv(f.Env()), f.Default())
		list = append(list, cvar{f.Env(), value[:min(len(value), toolRoom-1)]})
	}
	return list
}

// setName stores a string and its length, as all queries of the interface do: at most the
// number of bytes that the caller says, and the length that the whole string needs.
func (a *args) setName(i int, s string) {
	if a.addr(i+1) == 0 {
		return
	}
	room := int(*at[int32](a.addr(i + 1)))
	if a.addr(i) == 0 || room <= 0 {
		a.setInt(i+1, len(s)+1)
		return
	}
	a.setInt(i+1, a.setText(i, s, room)+1)
}

// toolIndex returns an index below n, or -1.
func (a *args) toolIndex(i, n int) int {
	if v := a.int(i); v >= 0 && v < n {
		return v
	}
	a.fail(toolError(toolInvalidIndex))
	return -1
}

func (p *Process) cvarInfo(a *args) error {
	i := a.toolIndex(0, len(p.tools.cvars))
	if a.err != nil {
		return a.err
	}
	a.setName(1, p.tools.cvars[i].name)
	a.setInt(3, toolVerbosity)
	a.setHandle(4, typeChar)
	set(a.addr(5), uintptr(0))
	a.setName(6, "a setting of Muster: see mpi.Config")
	a.setInt(8, toolNoObject)
	a.setInt(9, toolReadonly)
	return nil
}

// setIndex stores the index of a name.
func (a *args) setIndex(i, index int) error {
	if index < 0 {
		return toolError(toolInvalidName)
	}
	a.setInt(i, index)
	return nil
}

func (p *Process) cvarIndex(a *args) error {
	name := a.text(0)
	return a.setIndex(1, slices.IndexFunc(p.tools.cvars, func(v cvar) bool { return v.name == name }))
}

// toolAdd makes a handle, which is a number that no address has.
func (p *Process) toolAdd(variable int, session uintptr) uintptr {
	t := &p.tools
	t.last++
	t.handles[t.last<<16], t.owners[t.last<<16] = variable, session
	return t.last << 16
}

// toolFree frees the handle at parameter i.
func (p *Process) toolFree(a *args, i int) error {
	if a.addr(i) == 0 {
		return toolError(toolInvalidHandle)
	}
	at := at[uintptr](a.addr(i))
	if _, ok := p.tools.handles[*at]; !ok {
		return toolError(toolInvalidHandle)
	}
	delete(p.tools.handles, *at)
	delete(p.tools.owners, *at)
	*at = 0
	return nil
}

func (p *Process) cvarAlloc(a *args) error {
	i := a.toolIndex(0, len(p.tools.cvars))
	if a.err != nil {
		return a.err
	}
	set(a.addr(2), p.toolAdd(i, 0))
	a.setInt(3, toolRoom)
	return nil
}

func (p *Process) cvarRead(a *args) error {
	i, ok := p.tools.handles[a.addr(0)]
	if !ok || i < 0 {
		return toolError(toolInvalidHandle)
	}
	a.setText(1, p.tools.cvars[i].value, toolRoom)
	return nil
}
