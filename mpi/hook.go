package mpi

// Interposition, the role of PMPI (MPI-4.1 section 15.2): Config.Hook sees the calls of a
// rank. Without a hook the fast paths are the same as before: Send, Recv and the quick
// collectives leave them for the general path when typeCheck.slow is set, as in check
// mode, and Wait looks at requests that carry more than an operation. The general path
// checks World.observed. Config.Profile observes calls in the same places
// (profile_calls.go); it is not a Hook, so that it can keep its data in the hookedCall.
//
// A function of the API reports its call and does the work with functions that report
// nothing, so that the calls which the library makes for itself are not seen.

// Hook observes the calls of a rank. It is called in the goroutine of the call, and several
// goroutines may be in calls at the same time. If the ranks are goroutines of one process
// ([Local]), all of them call the same hook; [Comm.World] identifies the rank.
//
// A hook must not call the library. It sees the calls that communicate, wait or create
// communicators and windows; not those that only read or change local data, such as
// [Comm.Rank], [Request.Done] or [Vector]. Collective calls that are refused because of
// their arguments are not reported.
type Hook interface {
	// Begin is called when a call begins. The result identifies the call to the other
	// methods; a hook may return an index, a time or 0.
	Begin(call Call) (id uint64)
	// End is called when the call returns. st describes the message that it has received
	// or probed; it has no meaning for other calls, and its Source is [ProcNull] if there
	// is no message.
	End(id uint64, st Status, err error)
	// Complete is called when an operation is completed that the call start has started
	// ([Call.Starts]), before the end of the call by, which is Wait or Test or one of
	// their variants, or start itself. st is the status of the request. If by has completed
	// several requests, err is the error of the call.
	Complete(start, by uint64, st Status, err error)
}

// Call describes a call of the library.
type Call struct {
	// Name is the name of the function or method, such as "Isend". The calls that start a
	// [Persistent] or [Partitioned] have the name "Start".
	Name string
	Kind CallKind
	// Comm is the communicator; for calls of a window, that of the window.
	Comm *Comm
	// Peer is the destination, source, root or target: a rank of Comm, [AnySource], or
	// [ProcNull] if there is none.
	Peer int
	// Tag is the tag of the message, or [AnyTag] if there is none.
	Tag int
	// Bytes is the length of the data: of a message, of the buffer of a receive, of the
	// data of a collective, of a block where each rank has one, or of what the rank sends
	// where blocks differ.
	Bytes int
	// Source and SourceTag are those of the received message of a [CallSendrecv]; Peer and
	// Tag are those of the other.
	Source, SourceTag int
	// Starts reports whether the call starts an operation and returns its request.
	Starts bool
}

// CallKind classifies calls.
type CallKind uint8

const (
	CallSend        CallKind = iota // sends a message
	CallRecv                        // receives a message
	CallSendrecv                    // sends one message and receives another
	CallProbe                       // looks for a message
	CallMatch                       // looks for a message and removes it from matching: Mprobe, Improbe
	CallMrecv                       // receives a message of a CallMatch
	CallPartitioned                 // starts or advances a partitioned message
	CallWait                        // waits for requests
	CallTest                        // tests requests
	CallCollective                  // a collective operation
	CallAccess                      // accesses the memory of another rank
	CallSync                        // synchronizes the accesses of a window
	CallPrepare                     // prepares a persistent or partitioned operation
	CallCreate                      // creates a communicator or window, or opens a file
	CallFree                        // frees a communicator or window, or closes a file
	CallFile                        // reads or writes a file, or changes its state
)

var callKindNames = [...]string{"send", "receive", "sendrecv", "probe", "match", "matched receive", "partitioned",
	"wait", "test", "collective", "access", "synchronization", "prepare", "create", "free", "file"}

func (k CallKind) String() string { return callKindNames[k] }

// World returns the rank in the world of a rank of the communicator, such as Peer or
// [Status].Source. It returns negative numbers, such as AnySource, unchanged.
func (c *Call) World(rank int) int {
	if rank < 0 {
		return rank
	}
	return c.Comm.world(rank)
}

// Context returns a number that identifies the communicator, equally at all its ranks.
// Communicators without a rank in common may have the same.
func (c *Call) Context() uint32 { return c.Comm.ctx }

// maxHooks is the number of hooks of a rank: that of the program and those of the library.
const maxHooks = 3

// hookedCall is a call that hooks or the profile have seen the beginning of. A nil
// *hookedCall is a call of a rank without them. A request keeps the hookedCall of the call
// that started it; that of any other call is used again when the call has ended.
type hookedCall struct {
	w      *World
	ids    [maxHooks]uint64
	starts bool
	timed  timedCall   // of the profile
	more   requestMore // of the request that the call returns
	before []Request   // of a call on several requests: as they were
}

// setHooks makes all calls take the general path if there are hooks.
func (w *World) setHooks(hooks ...Hook) {
	for _, h := range hooks {
		if h != nil {
			w.watch.hooks = append(w.watch.hooks, h)
			w.observe()
		}
	}
}

// observe makes all calls take the general path.
func (w *World) observe() { w.watch.on, w.types.slow = true, true }

// begin reports that a call begins. It is inlined: without hooks it is a comparison.
func (c *Comm) begin(name string, kind CallKind, peer, tag, bytes int) *hookedCall {
	if !c.w.watch.on {
		return nil
	}
	return hookCall(&Call{Name: name, Kind: kind, Comm: c, Peer: peer, Tag: tag, Bytes: bytes})
}

// beginStart is begin for a call that returns a request.
func (c *Comm) beginStart(name string, kind CallKind, peer, tag, bytes int) *hookedCall {
	if !c.w.watch.on {
		return nil
	}
	return hookCall(&Call{Name: name, Kind: kind, Comm: c, Peer: peer, Tag: tag, Bytes: bytes, Starts: true})
}

// beginSendrecv is begin for a call that sends one message and receives another.
func (c *Comm) beginSendrecv(name string, dst, tag, bytes, src, srcTag int, starts bool) *hookedCall {
	if !c.w.watch.on {
		return nil
	}
	return hookCall(&Call{Name: name, Kind: CallSendrecv, Comm: c, Peer: dst, Tag: tag, Bytes: bytes, Source: src, SourceTag: srcTag, Starts: starts})
}

// beginColl is begin for a collective call.
func (c *Comm) beginColl(k *collCall, kind CallKind, starts bool) *hookedCall {
	if !c.w.watch.on || k.inner {
		return nil
	}
	return hookCall(&Call{Name: k.name, Kind: kind, Comm: c, Peer: k.rootOrNull(), Tag: AnyTag, Bytes: k.volume(), Starts: starts})
}

// beginCreate is begin for a call that creates or frees a communicator or window.
func (c *Comm) beginCreate(name string, kind CallKind) *hookedCall {
	return c.begin(name, kind, ProcNull, AnyTag, 0)
}

func hookCall(call *Call) *hookedCall {
	w := call.Comm.w
	var h *hookedCall
	if !call.Starts {
		h = w.watch.spareCall.Swap(nil)
	}
	if h == nil {
		h = &hookedCall{w: w, starts: call.Starts}
	}
	for i, hook := range w.watch.hooks {
		h.ids[i] = hook.Begin(*call)
	}
	if w.watch.calls != nil {
		w.watch.calls.begin(&h.timed, call)
	}
	return h
}

// end reports that the call returns.
func (h *hookedCall) end(st Status, err error) {
	if h != nil {
		h.report(st, err)
	}
}

// finish is end for a call without a status. It returns err.
func (h *hookedCall) finish(err error) error {
	if h != nil {
		h.report(noStatus, err)
	}
	return err
}

func (h *hookedCall) report(st Status, err error) {
	w := h.w
	if w.watch.calls != nil {
		w.watch.calls.end(&h.timed, st, err)
	}
	for i, hook := range w.watch.hooks {
		hook.End(h.ids[i], st, err)
	}
	if !h.starts {
		w.watch.spareCall.Store(h)
	}
}

// endProbe is end for a call that looks for a message: without one it has the status of ProcNull.
func (h *hookedCall) endProbe(ok bool, st Status, err error) {
	if !ok {
		st = noStatus
	}
	h.end(st, err)
}

// complete reports that the call by has completed the operation that h has started.
func (h *hookedCall) complete(by *hookedCall, st Status, err error) {
	if h.w.watch.calls != nil {
		h.w.watch.calls.complete(&h.timed, &by.timed, st, err)
	}
	for i, hook := range h.w.watch.hooks {
		hook.Complete(h.ids[i], by.ids[i], st, err)
	}
}

// finishStart is end for a call that returns the request r, which it adds the call to. An
// operation that is already complete is reported as such.
func (h *hookedCall) finishStart(r Request) Request {
	if h == nil {
		return r
	}
	refused := r.refusal()
	if refused == nil && !r.op.Active() {
		h.complete(h, noStatus, nil)
	}
	h.watchEnd(r)
	h.report(noStatus, refused)
	if r.more != nil {
		h.more = *r.more
	}
	h.more.hooked = h
	r.more = &h.more
	return r
}

// rootOrNull returns the root of a collective call, or ProcNull.
func (k *collCall) rootOrNull() int {
	if k.key.kind.Rooted() {
		return k.key.root
	}
	return ProcNull
}
