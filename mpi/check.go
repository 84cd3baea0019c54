package mpi

// Check mode (Config.Check): what must agree between the two sides of a message, or
// between the ranks of a collective call, is sent along and compared.
//
//	messages      a header before the data holds the call, the element type and the line
//	              of the sender. The call that completes the receive compares it, removes
//	              it and copies the data to its destination
//	collectives   each rank sends a description of its call to the next rank and compares
//	              that of the rank before it, so every difference is noticed somewhere
//	              (check_coll.go)
//	requests      are recorded until they are completed, so that Finalize can name the
//	              dropped ones, and receives what nobody has received (check_end.go)
//
// Without check mode none of this runs: typeCheck.last stays nil in check mode only, so
// the fast paths leave for the general ones, which look at Config.Check.

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/prof"
)

// checks is the state of check mode, one per world.
type checks struct {
	mu      sync.Mutex
	pending map[*checkedRequest]struct{} // started and not completed
	comms   map[uint32]*Comm             // whose messages are searched at the end, by context
	lost    []string                     // messages that were found before
	sites   sync.Map                     // files and lines by callPath, or address of C
	outer   atomic.Pointer[callFromC]    // the latest call of C; nil: the program is written in Go
}

// callFromC is a call of C that makes calls of this package.
type callFromC struct {
	name string
	pc   uintptr // to which it returns
	typ  string  // of the elements of a message; "": not known, and not compared
}

// enter records a call of C. Of calls of several threads at a time any may be recorded: it is
// used for file and line only.
func (s *checks) enter(name string, pc uintptr) { s.outer.Store(&callFromC{name: name, pc: pc}) }

// fromC returns the communicator for a message of C: a copy that knows the call.
func (c *Comm) fromC(name, typ string, pc uintptr) *Comm {
	d := *c
	d.call = &callFromC{name, pc, typ}
	return &d
}

// The header of a message: three texts, padded with zeros.
const (
	callBytes  = 24
	typeBytes  = 64
	siteBytes  = 72
	checkBytes = callBytes + typeBytes + siteBytes
)

// note is one side of a message.
type note struct{ call, typ, site string }

func (n note) String() string {
	s := n.call
	if n.typ != "" {
		s += " of " + n.typ
	}
	return s + atSite(n.site)
}

func noteOf[T any](c *Comm, call string) note {
	if o := c.outerCall(); o != nil {
		return note{o.name, o.typ, c.callSite()}
	}
	return note{call, typeText(reflect.TypeFor[T]()), c.callSite()}
}

// outerCall returns the call of C that makes the call, or nil.
func (c *Comm) outerCall() *callFromC {
	if c.call != nil {
		return c.call
	}
	return c.w.check.outer.Load()
}

// typeText names a type. Long names keep their end, which differs more.
func typeText(t reflect.Type) string { return lastBytes(t.String(), typeBytes) }

func lastBytes(s string, most int) string { return s[max(0, len(s)-most):] }

// callPath is the innermost part of a stack: the generic calls of this package and the
// code that made them.
type callPath [12]uintptr

// callSite returns the file and line outside of this package that made the call. It keeps
// what it has found: looking up files and lines takes several microseconds.
func (c *Comm) callSite() string {
	if o := c.outerCall(); o != nil {
		site, ok := c.w.check.sites.Load(o.pc)
		if !ok {
			site = lastBytes(prof.Site(o.pc-1), siteBytes) // the call is before the return address
			c.w.check.sites.Store(o.pc, site)
		}
		return site.(string)
	}
	var path callPath
	runtime.Callers(3, path[:])
	if site, ok := c.w.check.sites.Load(path); ok {
		return site.(string)
	}
	site := siteOf(path)
	c.w.check.sites.Store(path, site)
	return site
}

func siteOf(path callPath) string {
	frames := runtime.CallersFrames(path[:])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, modulePath+"/mpi.") {
			return lastBytes(fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line), siteBytes)
		}
		if !more {
			return ""
		}
	}
}

// waitName is how reports name a wait in the call.
func (n note) waitName() string { return n.call + " (" + n.site + ")" }

// stamp returns a message with its header.
func (n note) stamp(b []byte) []byte {
	out := make([]byte, checkBytes+len(b))
	copy(out[:callBytes], n.call)
	copy(out[callBytes:callBytes+typeBytes], n.typ)
	copy(out[callBytes+typeBytes:checkBytes], n.site)
	copy(out[checkBytes:], b)
	return out
}

func readNote(b []byte) note {
	text := func(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }
	return note{text(b[:callBytes]), text(b[callBytes : callBytes+typeBytes]), text(b[callBytes+typeBytes : checkBytes])}
}

// outgoingChecked adds the header in check mode.
func outgoingChecked[T any](c *Comm, call string, b []byte) []byte {
	if !c.w.cfg.Check {
		return b
	}
	return noteOf[T](c, call).stamp(b)
}

// checkedRequest is the part of a request that check mode needs.
type checkedRequest struct {
	c      *Comm
	mine   note
	what   string     // for the report of dropped requests
	packed []byte     // of a receive: header and data
	into   []byte     // destination of the data
	calls  *callCheck // of a collective
}

// trackRequest adds a started operation to the pending requests.
func (c *Comm) trackRequest(r Request, k *checkedRequest) Request {
	if !r.op.Active() {
		return r
	}
	k.c = c
	s := &c.w.check
	s.mu.Lock()
	if s.pending == nil {
		s.pending = make(map[*checkedRequest]struct{})
	}
	s.pending[k] = struct{}{}
	s.mu.Unlock()
	return r.with(func(more *requestMore) { more.check = k })
}

// trackSend records a send in check mode.
func (c *Comm) trackSend(r Request, call string, dst int) Request {
	if !c.w.cfg.Check || !r.op.Active() {
		return r
	}
	return c.trackRequest(r, &checkedRequest{what: fmt.Sprintf("%s to rank %d at %s", call, dst, c.callSite())})
}

// checkedIrecv is irecv in check mode.
func checkedIrecv(c *Comm, mine note, b []byte, src int, start func(packed []byte) Request) Request {
	k := &checkedRequest{mine: mine, packed: make([]byte, checkBytes+len(b)), into: b}
	k.what = fmt.Sprintf("%s from %s at %s", mine.call, rankText(src), mine.site)
	return c.trackRequest(start(k.packed), k)
}

// waitName is how reports name a wait for the request.
func (k *checkedRequest) waitName() string {
	switch {
	case k.calls != nil:
		return k.calls.waitName()
	case k.mine.call != "":
		return k.mine.waitName()
	}
	return "Wait"
}

func rankText(r int) string {
	if r == AnySource {
		return "any rank"
	}
	return fmt.Sprintf("rank %d", r)
}

// complete removes the request from the pending ones, and compares and removes the header
// of a received message.
func (k *checkedRequest) complete(st engine.Status, err error) (engine.Status, error) {
	s := &k.c.w.check
	s.mu.Lock()
	delete(s.pending, k)
	s.mu.Unlock()
	if k.calls != nil {
		return k.calls.complete(st, err)
	}
	if k.packed == nil || err != nil && !errors.Is(err, p2p.ErrTruncated) || st.Cancelled {
		return st, err
	}
	got := min(st.Bytes, len(k.packed))
	if got < checkBytes {
		return st, k.c.refuse(ErrIntern, k.mine.call, "the message of rank %d has no header of check mode", st.Source)
	}
	st.Bytes -= checkBytes
	if long := new(p2p.TruncatedError); errors.As(err, &long) {
		err = k.c.failure(&p2p.TruncatedError{Bytes: long.Bytes - checkBytes, Room: long.Room - checkBytes}, k.mine.call, st.Source, st.Tag, st.Bytes)
	}
	copy(k.into, k.packed[checkBytes:got])
	if differ := k.mine.differs(k.c, readNote(k.packed), st.Source, st.Tag); differ != nil {
		return st, differ
	}
	return st, err
}

// differs returns an error if the sender of a message has another element type.
func (n note) differs(c *Comm, sent note, source, tag int) error {
	if sent.typ == n.typ || sent.typ == "" || n.typ == "" {
		return nil
	}
	return &Error{Class: ErrType, Op: n.call, Comm: c.Name(), Rank: c.rank, Peer: source, Tag: tag,
		Err:  fmt.Errorf("the element types differ: rank %d sent with %s, rank %d received with %s", source, sent, c.rank, n),
		Hint: "use the same element type on both sides"}
}
