package mpi

import (
	"errors"
	"fmt"
	"strings"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
)

// Class is an MPI error class, with its number in MPI-5.0 (section 20.4).
// errors.Is(err, mpi.ErrRank) reports whether an error of this package has the class.
type Class int

// The error classes.
const (
	ErrBuffer      Class = 1  // invalid buffer
	ErrCount       Class = 2  // invalid count
	ErrType        Class = 3  // element type has pointers, or does not match
	ErrTag         Class = 4  // invalid tag
	ErrComm        Class = 5  // invalid communicator
	ErrRank        Class = 6  // invalid rank
	ErrRequest     Class = 7  // request was completed before
	ErrRoot        Class = 8  // invalid root
	ErrGroup       Class = 9  // invalid group
	ErrOp          Class = 10 // invalid reduction operation
	ErrTopology    Class = 11 // invalid topology
	ErrDims        Class = 12 // invalid dimensions of a grid
	ErrArg         Class = 13 // another invalid argument
	ErrUnknown     Class = 14 // unknown error
	ErrTruncate    Class = 15 // message longer than the receive buffer
	ErrOther       Class = 16 // other errors, such as collective calls that differ between ranks
	ErrIntern      Class = 17 // the library or its transport failed
	ErrPending     Class = 18 // operation is not complete: its context has ended
	ErrInStatus    Class = 19 // error in a status
	ErrAccess      Class = 20 // no permission to access the file
	ErrBadFile     Class = 23 // invalid file name
	ErrDisp        Class = 26 // invalid window displacement
	ErrFileExists  Class = 28 // file exists
	ErrFileInUse   Class = 29 // file is in use
	ErrFile        Class = 30 // invalid file
	ErrIO          Class = 35 // other errors of files
	ErrName        Class = 38 // service that is not published
	ErrNoMem       Class = 39 // out of memory
	ErrNotSame     Class = 40 // arguments of a collective call on a file differ between ranks
	ErrNoSpace     Class = 41 // not enough space on the storage device
	ErrNoSuchFile  Class = 42 // file does not exist
	ErrPort        Class = 43 // invalid name of a port, or a port that is closed
	ErrProcAborted Class = 44 // a rank has died or left
	ErrRMAAttach   Class = 47 // memory cannot be attached, or is not
	ErrRMARange    Class = 49 // memory outside of the window
	ErrRMAShared   Class = 50 // memory cannot be shared
	ErrRMASync     Class = 51 // window synchronization missing, or in the wrong order
	ErrRMAFlavor   Class = 52 // wrong kind of window
	ErrService     Class = 53 // service that cannot be published or withdrawn
	ErrSize        Class = 55 // invalid size
	ErrSpawn       Class = 56 // processes could not be started, or have not joined
	ErrUnsupported Class = 58 // operation is not supported
	ErrTooLarge    Class = 59 // value too large
	ErrWin         Class = 60 // invalid window
	// MPI-5.0 has no number for these; they are those of MPICH.
	ErrProcFailed Class = 101 // a rank has failed, in a job that continues
	ErrRevoked    Class = 103 // the communicator has been revoked
)

var classNames = map[Class]string{
	ErrBuffer: "buffer", ErrCount: "count", ErrType: "element type", ErrTag: "tag", ErrComm: "communicator",
	ErrRank: "rank", ErrRequest: "request", ErrRoot: "root", ErrGroup: "group", ErrOp: "operation", ErrArg: "argument",
	ErrTopology: "topology", ErrDims: "dimensions",
	ErrUnknown: "unknown error", ErrTruncate: "message truncated", ErrOther: "error", ErrIntern: "internal error",
	ErrPending: "pending", ErrInStatus: "error in status", ErrNoMem: "out of memory", ErrProcAborted: "a rank is gone",
	ErrAccess: "access", ErrBadFile: "file name", ErrFileExists: "file exists", ErrFileInUse: "file in use", ErrFile: "file",
	ErrIO: "input or output", ErrNotSame: "arguments differ", ErrNoSpace: "no space", ErrNoSuchFile: "no such file",
	ErrDisp: "displacement", ErrRMAAttach: "attached memory", ErrRMARange: "outside of the window", ErrRMAShared: "shared memory",
	ErrRMASync: "synchronization of a window", ErrRMAFlavor: "kind of window", ErrSize: "size", ErrSpawn: "spawn", ErrName: "service name", ErrPort: "port", ErrService: "service", ErrWin: "window",
	ErrUnsupported: "unsupported", ErrTooLarge: "value too large", ErrProcFailed: "a rank has failed", ErrRevoked: "communicator revoked",
}

func (c Class) Error() string {
	if s, ok := classNames[c]; ok {
		return "mpi: " + s
	}
	return fmt.Sprintf("mpi: error class %d", int(c))
}

// Error describes a failed call.
type Error struct {
	Class     Class
	Op        string // the call, such as "Recv"
	Comm      string // name of the communicator
	Rank      int    // the calling rank, in that communicator
	Peer      int    // the other rank, in that communicator; AnySource; or ProcNull if there is none
	Tag       int
	Transport string // device that carries the message
	Bytes     int    // number of bytes that were transferred
	Err       error  // the cause
	Hint      string // what to do about it
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

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the class of the error.
func (e *Error) Is(target error) bool {
	c, ok := target.(Class)
	return ok && c == e.Class
}

// noTag marks errors of calls that have no tag.
const noTag = -2

// refuse returns the error for an invalid argument or call.
func (c *Comm) refuse(class Class, op string, format string, args ...any) error {
	e := &Error{Class: class, Op: op, Peer: ProcNull, Tag: noTag, Err: fmt.Errorf(format, args...)}
	if c != nil {
		e.Comm, e.Rank = c.Name(), c.rank
	}
	var pointer *pointerError
	if errors.As(e.Err, &pointer) {
		e.Hint = valueCall(op) + ", or a type of numbers and arrays"
	}
	return e
}

// failure adds the call to an error of the engine.
func (c *Comm) failure(err error, op string, peer, tag, bytes int) error {
	var broken *engine.BrokenError
	if errors.As(err, &broken) {
		return c.brokenFailure(op, broken)
	}
	e := &Error{Class: c.classOf(err), Op: op, Comm: c.Name(), Rank: c.rank, Peer: peer, Tag: tag,
		Transport: c.e.Attr(c.worldOrAnyone(peer)).Name, Bytes: bytes, Err: err}
	if errors.Is(err, p2p.ErrTruncated) {
		e.Hint = "receive into a larger buffer, or get the size first with Probe"
	}
	switch e.Class {
	case ErrProcFailed:
		e.Hint = hintFailed
	case ErrRevoked:
		e.Hint = hintRevoked
	}
	return e
}

func (c *Comm) classOf(err error) Class {
	var dead *engine.PeerDeadError
	var gone *pmi.LauncherError
	var revoked *engine.RevokedError
	var excluded *engine.ExcludedError
	switch {
	case errors.As(err, &revoked):
		return ErrRevoked
	case (errors.As(err, &dead) || errors.Is(err, p2p.ErrTransport)) && c.e.Tolerates():
		return ErrProcFailed
	case errors.Is(err, p2p.ErrTruncated):
		return ErrTruncate
	case errors.As(err, &dead), errors.As(err, &gone), errors.As(err, &excluded):
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
