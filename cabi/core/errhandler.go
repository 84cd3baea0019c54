package core

// Error handlers (MPI-4.1 section 9.3).

// errhandler is an error handler. It exists while it has a handle or an object uses it.
type errhandler struct {
	handle   handle
	kind     handlerKind
	fn       uintptr
	language openLanguage
	refs     int // guarded by Process.handlersMu
}

type handlerKind int

const (
	fatalHandler handlerKind = iota
	abortHandler
	returnHandler
	userHandler
)

func errhandlers() map[string]handler {
	table := map[string]handler{
		"Errhandler_create": (*Process).errhandlerCreate,
		"Errhandler_free":   (*Process).errhandlerFree,
		"Errhandler_set":    setErrhandler((*args).commOwner),
		"Errhandler_get":    getErrhandler((*args).commOwner),
	}
	for kind, find := range map[string]func(*args, int) handled{
		"Comm": (*args).commOwner, "Win": (*args).winOwner, "File": (*args).fileOwner, "Session": (*args).sessionOwner,
	} {
		table[kind+"_create_errhandler"] = (*Process).errhandlerCreate
		table[kind+"_set_errhandler"] = setErrhandler(find)
		table[kind+"_get_errhandler"] = getErrhandler(find)
		table[kind+"_call_errhandler"] = callErrhandler(find)
	}
	return table
}

// handled is an owner whose error handler can be set. The result of handlerField is guarded by
// Process.handlersMu.
type handled interface {
	owner
	handlerField() **errhandler
}

func (c *comm) handlerField() **errhandler { return &c.handler }

func (a *args) commOwner(i int) handled {
	if c := a.comm(i); c != nil {
		return c
	}
	return nil
}

// standardHandlers are the predefined error handlers. unset is that of objects for which the
// program has set none, and of communicators that are made of those: it is fatal, unless the
// program has set that of MPI_COMM_WORLD in the meantime, as in MPICH.
type standardHandlers struct{ fatal, abort, returns, unset *errhandler }

func newStandardHandlers() standardHandlers {
	return standardHandlers{
		fatal:   &errhandler{handle: errorsFatal, kind: fatalHandler},
		unset:   &errhandler{handle: errorsFatal, kind: fatalHandler},
		abort:   &errhandler{handle: errorsAbort, kind: abortHandler},
		returns: &errhandler{handle: errorsReturn, kind: returnHandler},
	}
}

// errhandler returns the error handler of a handle.
func (a *args) errhandler(i int) *errhandler {
	switch h := a.handle(i); h {
	case errorsFatal:
		return a.p.standard.fatal
	case errorsAbort:
		return a.p.standard.abort
	case errorsReturn:
		return a.p.standard.returns
	default:
		e := a.p.handlers.get(h)
		if e == nil {
			a.fail(errorf(errArg, "%#x is not an error handler", uint32(h)))
		}
		return e
	}
}

// retain counts one more user of an error handler.
func (p *Process) retain(h *errhandler) *errhandler {
	p.handlersMu.Lock()
	defer p.handlersMu.Unlock()
	if h != nil {
		h.refs++
	}
	return h
}

// release counts one user less.
func (p *Process) release(h *errhandler) {
	p.handlersMu.Lock()
	defer p.handlersMu.Unlock()
	p.drop(h)
}

// drop is release with the lock held.
func (p *Process) drop(h *errhandler) {
	if h == nil || h.kind != userHandler {
		return
	}
	if h.refs--; h.refs == 0 {
		p.handlers.remove(h.handle)
	}
}

func (p *Process) errhandlerCreate(a *args) error {
	a.setHandle(1, p.addErrhandler(&errhandler{kind: userHandler, fn: a.addr(0)}))
	return nil
}

// addErrhandler stores an error handler and returns its handle.
func (p *Process) addErrhandler(h *errhandler) handle {
	p.handlersMu.Lock()
	defer p.handlersMu.Unlock()
	h.refs = 1
	h.handle = p.handlers.add(h)
	return h.handle
}

func (p *Process) errhandlerFree(a *args) error {
	at := a.handleAt(0)
	// The predefined ones may be freed too: MPI_Comm_get_errhandler returns them.
	if at.get()&^3 != errorsFatal {
		h := p.handlers.get(at.get())
		if h == nil {
			return errorf(errArg, "%#x is not an error handler", uint32(at.get()))
		}
		p.release(h)
	}
	at.set(errhandlerNull)
	return nil
}

func setErrhandler(find func(*args, int) handled) handler {
	return func(p *Process, a *args) error {
		o, h := find(a, 0), a.errhandler(1)
		if a.err != nil {
			return nil
		}
		p.handlersMu.Lock()
		defer p.handlersMu.Unlock()
		h.refs++
		p.drop(*o.handlerField())
		*o.handlerField() = h
		if p.all != nil { // the front needs it in a child of fork, which has no core
			set(p.returns, flag(p.defaultOwnerLocked().handler.kind == returnHandler))
		}
		return nil
	}
}

func getErrhandler(find func(*args, int) handled) handler {
	return func(p *Process, a *args) error {
		o := find(a, 0)
		a.results(1)
		if a.err != nil {
			return nil
		}
		p.handlersMu.Lock()
		defer p.handlersMu.Unlock()
		h := *o.handlerField()
		h.refs++
		a.setHandle(1, h.handle)
		return nil
	}
}

// callErrhandler returns the given code as an error, so that the front calls the error
// handler. The call itself succeeds.
func callErrhandler(find func(*args, int) handled) handler {
	return func(p *Process, a *args) error {
		o := find(a, 0)
		if a.err != nil {
			return nil
		}
		a.owner, a.called = o, true
		c, text := p.codes.lookup(int32(a.int(1)))
		return &failure{class: c, code: p.abi.numberFor(numberCode, int32(a.int(1))), text: text}
	}
}
