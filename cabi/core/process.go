package core

// The state of the library in a process, and the dispatch of calls.

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/muster-mpi/muster/mpi"
)

// Callback calls a function of the program with integers and addresses, and returns its int
// result.
type Callback func(fn uintptr, args ...uint64) int32

// Process is the library in one process, from its loading to its end.
type Process struct {
	callback  Callback
	functions [len(functionTable)]function
	calls     sync.Pool // of args, so that calls do not allocate
	abi       *abi      // of the program
	front     directPath
	frontVariables
	job

	comms table[comm]
	types table[datatype]
	ops   table[op]
	wins  table[win]
	objects
	messaging

	base  basicTypes
	kinds kinds
	codes codes
	tools tools
}

// frontVariables are the addresses of variables of the front.
type frontVariables struct {
	weights weights // what programs pass instead of weights
	atExit  uintptr // set if the program must leave the job when it exits
	returns uintptr // set if errors of calls without an object return
}

// function is an entry of the dispatch table. call is nil if it is not implemented.
type function struct {
	functionRow
	call  handler
	wide  bool
	early bool // may be called before MPI_Init and after MPI_Finalize
}

type handler func(*Process, *args) error

// New returns the library before MPI_Init. extended is the address of a C function for the
// arithmetic of types that Go does not have (op_extended.go).
func New(callback Callback, extended uintptr) *Process {
	p := &Process{
		callback: callback,
		abi:      newABI(nativeABI, -1), // until the front says which
		comms:    newTable[comm](kindComm),
		types:    newTable[datatype](kindDatatype),
		ops:      newTable[op](kindOp),
		wins:     newTable[win](kindWin),
		kinds:    newKinds(),
	}
	p.addExtended(extended)
	p.openTypes()
	p.objects.open()
	p.messaging.open()
	early := map[string]bool{}
	for _, name := range earlyFunctions {
		early[name] = true
	}
	known := handlers()
	for i, row := range functionTable {
		short := strings.TrimPrefix(row.name, "MPI_")
		f := &p.functions[i]
		f.functionRow = row
		f.call, f.wide = handlerOf(known, short)
		f.early = early[short] || strings.HasPrefix(row.name, "MPI_T_") || strings.HasPrefix(short, "Info_") || strings.HasPrefix(short, "Session_")
	}
	return p
}

// ImplementedFunctions returns which functions the core implements.
func ImplementedFunctions() map[string]bool {
	known, names := handlers(), map[string]bool{}
	for _, row := range functionTable {
		call, _ := handlerOf(known, strings.TrimPrefix(row.name, "MPI_"))
		names[row.name] = call != nil
	}
	return names
}

// handlers returns the functions of all chapters, by name without MPI_.
func handlers() map[string]handler {
	known := map[string]handler{}
	for _, group := range chapters() {
		for name, call := range group {
			known[name] = call
		}
	}
	return known
}

// handlerOf returns the implementation of a function, which may be that of the one without _c, and
// whether its counts are wide.
func handlerOf(known map[string]handler, short string) (call handler, wide bool) {
	call = known[short]
	narrow, wide := strings.CutSuffix(short, "_c")
	if wide && call == nil {
		call = known[narrow]
	}
	return call, wide
}

// chapters returns the functions of all files, by name without MPI_.
func chapters() []map[string]handler {
	return []map[string]handler{
		environment(),
		pointToPoint(),
		completion(),
		probes(),
		bufferedSends(),
		generalizedRequests(),
		statuses(),
		openInternals(),
		standardCalls(),
		partitionedCalls(),
		communicators(),
		failures(),
		collectives(),
		typeConstructors(),
		typeQueries(),
		counts(),
		packing(),
		operations(),
		groups(),
		infos(),
		errhandlers(),
		attributeCalls(),
		fortranAttributes(),
		errorCodes(),
		sessionCalls(),
		intercommunicators(),
		processes(),
		portCalls(),
		topologies(),
		graphs(),
		windows(),
		files(),
		accesses(),
		accumulates(),
		synchronizations(),
		toolCalls(),
	}
}

// earlyFunctions may be called before MPI_Init and after MPI_Finalize (MPI-4.1 section 11.4.1),
// besides those of MPI_T, of info objects and of sessions.
var earlyFunctions = []string{
	"Get_library_version", "Error_class", "Error_string", "Add_error_class", "Add_error_code", "Add_error_string",
	"Errhandler_free", "Comm_create_errhandler", "Win_create_errhandler", "File_create_errhandler", "Abort",
	"Alloc_mem", "Free_mem", "Get_address",
}

// Numbers of the functions that only the front calls; the same are in front.h.
const (
	callInit     = -1
	callFinalize = -2
	callLoad     = -3
	callExit     = -4
	callShare    = -5
	callWake     = -6
)

// Call makes the call of function number id. args and out are addresses of the front: the
// arguments, and what to do with an error. It returns an error code, or 0.
func (p *Process) Call(id int, argv, result uintptr) (code int32) {
	a, ok := p.calls.Get().(*args)
	if !ok {
		a = new(args)
	}
	*a = args{p: p, v: at[[maxArgs]uint64](argv), site: uintptr(at[outcome](result).site)}
	defer func() {
		if v := recover(); v != nil {
			err := errorf(errIntern, "panic: %v\n%s", v, debug.Stack())
			fmt.Fprintln(os.Stderr, "muster:", err)
			code = p.raise(a, err, at[outcome](result))
		}
	}()
	if err := p.dispatch(id, a); err != nil {
		code = p.raise(a, err, at[outcome](result))
	}
	p.calls.Put(a)
	return code
}

func (p *Process) dispatch(id int, a *args) error {
	switch id {
	case callInit:
		a.name = "MPI_Init"
		return p.init(a)
	case callFinalize:
		a.name = "MPI_Finalize"
		if p.front.pending() {
			p.front.post(p)
		}
		return p.finalize()
	case callLoad:
		a.name = "MPI_Init"
		return p.load(a)
	case callExit:
		a.name = "exit"
		return p.exit()
	case callShare:
		p.front.share(p, a)
		return nil
	case callWake:
		p.front.engine.Progress.DirectWake(a.int(0))
		return nil
	}
	if p.front.pending() {
		p.front.post(p)
	}
	f := &p.functions[id]
	a.name, a.wide = f.name, f.wide
	if f.call == nil {
		return errorf(errUnsupported, "Muster does not implement this function yet")
	}
	if !f.early && p.state.Load() != running && !p.active() {
		if p.state.Load() == finalized {
			return errorf(errOther, "called after MPI_Finalize")
		}
		return errorf(errOther, "called before MPI_Init")
	}
	if p.enter != nil {
		p.enter(f.name, a.site)
	}
	if p.abi.native() {
		return f.do(p, a)
	}
	p.abi.decode(a, f.conversions)
	err := f.do(p, a)
	p.abi.encode(a, f.conversions, err != nil)
	return err
}

func (f *function) do(p *Process, a *args) error {
	if a.require(f.required); a.err != nil {
		return a.err
	}
	err := f.call(p, a)
	if a.err != nil {
		return a.err
	}
	return err
}

// load gets the addresses of variables of the front, and its ABI.
func (p *Process) load(a *args) error {
	name := text(a.addr(5))
	if p.front.mem != nil {
		return errorf(errOther, "the process has loaded MPI libraries of two ABIs: %s and %s", p.abi.title, abiTables[name].title)
	}
	p.frontVariables = frontVariables{weights{none: a.addr(0), empty: a.addr(1)}, a.addr(2), a.addr(4)}
	p.abi = newABI(name, int(int64(a.v[8])))
	for _, o := range memory[predefinedHandle](a.addr(6), a.int(7)) {
		p.abi.addPredefined(o.word, o.number, o.fortran, text(o.kind))
	}
	if p.abi.shift >= openShift {
		p.abi.mapHandles()
	}
	p.front.open(p, a.addr(3))
	return nil
}

// predefinedHandle is struct muster_predefined of front.h.
type predefinedHandle struct {
	word    uint64
	number  handle
	fortran int32
	kind    uintptr
}

// threadMultiple is MPI_THREAD_MULTIPLE.
const threadMultiple = 3

// init is MPI_Init_thread: required and the address of provided, which is 0 for MPI_Init.
func (p *Process) init(a *args) error {
	if !p.state.CompareAndSwap(notInitialized, running) {
		return errorf(errOther, "MPI_Init was called before")
	}
	p.mainThread = thread()
	p.level = min(max(int(p.abi.number(numberLevel, int32(a.int(0)))), 0), threadMultiple)
	if err := p.join(); err != nil {
		return err
	}
	if a.addr(1) != 0 {
		a.setInt(1, int(p.abi.numberFor(numberLevel, int32(p.level))))
	}
	return nil
}

func (p *Process) finalize() error {
	if p.state.Load() != running {
		return errorf(errOther, "the library is not initialized, or MPI_Finalize was called before")
	}
	if err := p.closeWorld(); err != nil {
		return err
	}
	if err := p.leave(true); err != nil {
		return err
	}
	p.state.Store(finalized)
	return nil
}

func environment() map[string]handler {
	return map[string]handler{
		"Abort":               (*Process).abort,
		"Get_library_version": (*Process).libraryVersion,
		"Get_processor_name":  (*Process).processorName,
		"Query_thread":        (*Process).queryThread,
		"Is_thread_main":      (*Process).isThreadMain,
		"Alloc_mem":           (*Process).allocMem,
		"Free_mem":            (*Process).freeMem,

		"MPIX_GPU_query_support": func(_ *Process, a *args) error { a.setInt(1, 0); return nil }, // none
	}
}

// abort is MPI_Abort. The front prints the text and leaves through Abort, so that the
// buffers of C are written.
func (p *Process) abort(a *args) error {
	code := a.int(1)
	a.owner, a.abort, a.exit = nil, true, int32(code)
	return &failure{class: errOther, code: int32(max(code, 1)), text: fmt.Sprintf("the program ends the job with status %d", code)}
}

func (p *Process) libraryVersion(a *args) error {
	if a.results(0, 1); a.err != nil {
		return nil
	}
	a.setInt(1, a.setText(0, "Muster "+mpi.Version()+", ABI of "+p.abi.title, p.abi.limits.libraryVersion))
	return nil
}

func (p *Process) processorName(a *args) error {
	if a.results(0, 1); a.err != nil {
		return nil
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	a.setInt(1, a.setText(0, name, p.abi.limits.processorName))
	return nil
}

// isThreadMain is MPI_Is_thread_main. A call runs on the thread of the program.
func (p *Process) isThreadMain(a *args) error {
	a.setFlag(0, thread() == p.mainThread)
	return nil
}

func (p *Process) queryThread(a *args) error {
	a.setInt(0, p.level)
	return nil
}
