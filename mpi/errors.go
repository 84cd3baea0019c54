package mpi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
)

// Class is an error class of MPI, with the number that MPI-5.0 gives it
// (section 20.4). errors.Is(err, mpi.ErrRank) finds it in any error of this
// package.
type Class int

const (
	ErrBuffer      Class = 1  // buffer cannot be used
	ErrCount       Class = 2  // count out of range
	ErrType        Class = 3  // element type holds pointers, or does not fit
	ErrTag         Class = 4  // tag out of range
	ErrComm        Class = 5  // communicator cannot be used
	ErrRank        Class = 6  // rank out of range
	ErrRequest     Class = 7  // request was completed before
	ErrRoot        Class = 8  // root out of range
	ErrGroup       Class = 9  // group cannot be used
	ErrOp          Class = 10 // reduction operation cannot be used
	ErrTopology    Class = 11 // the ranks have no such neighbors
	ErrDims        Class = 12 // dimensions of a grid that cannot be
	ErrArg         Class = 13 // some other argument
	ErrUnknown     Class = 14
	ErrTruncate    Class = 15 // message longer than the receive buffer
	ErrOther       Class = 16 // among others: ranks are not in the same collective call
	ErrIntern      Class = 17 // the library or its transport failed
	ErrPending     Class = 18
	ErrInStatus    Class = 19
	ErrDisp        Class = 26 // place in a window that cannot be
	ErrNoMem       Class = 39
	ErrProcAborted Class = 44 // a rank has died or left
	ErrRMAAttach   Class = 47 // memory that cannot be attached, or is not
	ErrRMARange    Class = 49 // memory outside of the window
	ErrRMAShared   Class = 50 // memory that cannot be shared
	ErrRMASync     Class = 51 // synchronisation missing, or at the wrong time
	ErrRMAFlavor   Class = 52 // window that was made in another way
	ErrSize        Class = 55 // size that cannot be
	ErrUnsupported Class = 58
	ErrTooLarge    Class = 59
	ErrWin         Class = 60 // window cannot be used
)

var classNames = map[Class]string{
	ErrBuffer: "buffer", ErrCount: "count", ErrType: "element type", ErrTag: "tag", ErrComm: "communicator",
	ErrRank: "rank", ErrRequest: "request", ErrRoot: "root", ErrGroup: "group", ErrOp: "operation", ErrArg: "argument",
	ErrTopology: "topology", ErrDims: "dimensions",
	ErrUnknown: "unknown error", ErrTruncate: "message truncated", ErrOther: "error", ErrIntern: "internal error",
	ErrPending: "pending", ErrInStatus: "error in status", ErrNoMem: "out of memory", ErrProcAborted: "a rank is gone",
	ErrDisp: "displacement", ErrRMAAttach: "attached memory", ErrRMARange: "outside of the window", ErrRMAShared: "shared memory",
	ErrRMASync: "synchronisation of a window", ErrRMAFlavor: "kind of window", ErrSize: "size", ErrWin: "window",
	ErrUnsupported: "unsupported", ErrTooLarge: "value too large",
}

func (c Class) Error() string {
	if s, ok := classNames[c]; ok {
		return "mpi: " + s
	}
	return fmt.Sprintf("mpi: error class %d", int(c))
}

// Error says what failed, with whom, over what, and why.
type Error struct {
	Class     Class
	Op        string // the call: "Recv"
	Comm      string // name of the communicator
	Rank      int    // who called, in that communicator
	Peer      int    // the other side, in that communicator; AnySource; ProcNull if there is none
	Tag       int
	Transport string // device the message would have taken
	Bytes     int    // how much of the message had been moved
	Err       error  // the cause
	Hint      string // what to do next
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mpi: %s", e.Op)
	switch {
	case e.Peer >= 0:
		fmt.Fprintf(&b, " with rank %d", e.Peer)
	case e.Peer == AnySource:
		b.WriteString(" from any rank")
	}
	if e.Comm != "" {
		fmt.Fprintf(&b, " on %s", e.Comm)
	}
	if e.Peer != ProcNull && e.Tag != noTag {
		if e.Tag == AnyTag {
			b.WriteString(", any tag")
		} else {
			fmt.Fprintf(&b, ", tag %d", e.Tag)
		}
	}
	if e.Transport != "" {
		fmt.Fprintf(&b, ", over %s", e.Transport)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Bytes > 0 {
		fmt.Fprintf(&b, " (%d bytes done)", e.Bytes)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is finds the class.
func (e *Error) Is(target error) bool {
	c, ok := target.(Class)
	return ok && c == e.Class
}

// noTag marks errors of calls that have no tag.
const noTag = -2

// refuse makes the error for an argument that cannot be used.
func (c *Comm) refuse(class Class, op string, format string, args ...any) error {
	e := &Error{Class: class, Op: op, Peer: ProcNull, Tag: noTag, Err: fmt.Errorf(format, args...)}
	if c != nil {
		e.Comm, e.Rank = c.name, c.rank
	}
	return e
}

// failure adds to an error of the engine what was being done.
func (c *Comm) failure(err error, op string, peer, tag, bytes int) error {
	var broken *engine.BrokenError
	if errors.As(err, &broken) {
		return c.brokenFailure(op, broken)
	}
	e := &Error{Class: classOf(err), Op: op, Comm: c.name, Rank: c.rank, Peer: peer, Tag: tag,
		Transport: c.e.Attr(c.worldOrAnyone(peer)).Name, Bytes: bytes, Err: err}
	if errors.Is(err, p2p.ErrTruncated) {
		e.Hint = "receive into a larger buffer, or ask for the size first with Probe"
	}
	return e
}

func classOf(err error) Class {
	var dead *engine.PeerDeadError
	var gone *pmi.LauncherError
	switch {
	case errors.Is(err, p2p.ErrTruncated):
		return ErrTruncate
	case errors.As(err, &dead), errors.As(err, &gone):
		return ErrProcAborted
	case errors.Is(err, engine.ErrStale), errors.Is(err, engine.ErrShared):
		return ErrRequest
	case errors.Is(err, engine.ErrGaveUp):
		return ErrPending
	case errors.Is(err, p2p.ErrTransport), errors.Is(err, p2p.ErrProtocol):
		return ErrIntern
	}
	return ErrOther
}
