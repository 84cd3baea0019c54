package core

// Error classes, error codes, and what happens to an error (MPI-4.1 chapter 9).

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/muster-mpi/muster/mpi"
)

// class is an error class of the MPICH ABI.
type class int32

const (
	errBuffer      class = 1
	errCount       class = 2
	errType        class = 3
	errTag         class = 4
	errComm        class = 5
	errRank        class = 6
	errRoot        class = 7
	errGroup       class = 8
	errOp          class = 9
	errTopology    class = 10
	errDims        class = 11
	errArg         class = 12
	errUnknown     class = 13
	errTruncate    class = 14
	errOther       class = 15
	errIntern      class = 16
	errInStatus    class = 17
	errPending     class = 18
	errRequest     class = 19
	errAccess      class = 20
	errAmode       class = 21
	errBadFile     class = 22
	errDupDatarep  class = 24
	errFileExists  class = 25
	errFileInUse   class = 26
	errFile        class = 27
	errInfo        class = 28
	errInfoKey     class = 29
	errInfoValue   class = 30
	errInfoNoKey   class = 31
	errIO          class = 32
	errName        class = 33
	errNoMem       class = 34
	errNotSame     class = 35
	errNoSpace     class = 36
	errNoSuchFile  class = 37
	errPort        class = 38
	errQuota       class = 39
	errReadOnly    class = 40
	errService     class = 41
	errSpawn       class = 42
	errUnsupported class = 44
	errWin         class = 45
	errBase        class = 46
	errLockType    class = 47
	errKeyval      class = 48
	errRMAConflict class = 49
	errRMASync     class = 50
	errSize        class = 51
	errDisp        class = 52
	errAssert      class = 53
	errRMARange    class = 55
	errRMAAttach   class = 56
	errRMAShared   class = 57
	errRMAFlavor   class = 58
	errSession     class = 75
	errProcAborted class = 76
	errTooLarge    class = 77
	errProcFailed  class = 101 // MPIX_ERR_PROC_FAILED
	errRevoked     class = 103

	lastClass = 78 // the first that Add_error_class returns
	lastCode  = 0x3fffffff
)

// classOf has the classes of package mpi, whose numbers are those of MPI-5.0.
var classOf = map[mpi.Class]class{
	mpi.ErrBuffer: errBuffer, mpi.ErrCount: errCount, mpi.ErrType: errType, mpi.ErrTag: errTag, mpi.ErrComm: errComm,
	mpi.ErrRank: errRank, mpi.ErrRequest: errRequest, mpi.ErrRoot: errRoot, mpi.ErrGroup: errGroup, mpi.ErrOp: errOp,
	mpi.ErrTopology: errTopology, mpi.ErrDims: errDims, mpi.ErrArg: errArg, mpi.ErrUnknown: errUnknown,
	mpi.ErrTruncate: errTruncate, mpi.ErrOther: errOther, mpi.ErrIntern: errIntern, mpi.ErrPending: errPending,
	mpi.ErrInStatus: errInStatus, mpi.ErrDisp: errDisp, mpi.ErrNoMem: errNoMem, mpi.ErrProcAborted: errProcAborted,
	mpi.ErrRMAAttach: errRMAAttach, mpi.ErrRMARange: errRMARange, mpi.ErrRMAShared: errRMAShared,
	mpi.ErrRMASync: errRMASync, mpi.ErrRMAFlavor: errRMAFlavor, mpi.ErrSize: errSize,
	mpi.ErrAccess: errAccess, mpi.ErrBadFile: errBadFile, mpi.ErrFileExists: errFileExists, mpi.ErrFileInUse: errFileInUse, mpi.ErrFile: errFile,
	mpi.ErrIO: errIO, mpi.ErrNotSame: errNotSame, mpi.ErrNoSpace: errNoSpace, mpi.ErrNoSuchFile: errNoSuchFile,
	mpi.ErrSpawn: errSpawn, mpi.ErrPort: errPort, mpi.ErrName: errName, mpi.ErrService: errService,
	mpi.ErrUnsupported: errUnsupported, mpi.ErrTooLarge: errTooLarge, mpi.ErrWin: errWin, mpi.ErrProcFailed: errProcFailed, mpi.ErrRevoked: errRevoked,
}

// failure is an error of this package.
type failure struct {
	class class
	code  int32 // if the program made it (MPI_Add_error_code, a callback), else 0
	text  string
}

func (f *failure) Error() string { return f.text }

func errorf(c class, format string, v ...any) error {
	return &failure{class: c, text: fmt.Sprintf(format, v...)}
}

// codeError is the error of a callback of the program, which returned a code.
func codeError(code int32) error {
	return &failure{code: code, text: fmt.Sprintf("the callback returned %d", code)}
}

// classify returns the class of an error, and its code if it has one already.
func classify(err error) (class, int32) {
	var f *failure
	if errors.As(err, &f) {
		return f.class, f.code
	}
	var e *mpi.Error
	if errors.As(err, &e) {
		var errno syscall.Errno
		if errors.As(err, &errno) && fileErrors[errno] != 0 {
			return fileErrors[errno], 0
		}
		if c, ok := classOf[e.Class]; ok {
			return c, 0
		}
	}
	return errOther, 0
}

// owner is an object with an error handler.
type owner interface {
	errhandler() *errhandler
	self() (handle, uintptr) // the first argument of a handler; the address is that of a file
}

// What the front does with an error; the same numbers are in front.h.
const (
	outcomeReturn = iota
	outcomeFatal
	outcomeHandler
)

// outcome is struct muster_outcome of front.h.
type outcome struct {
	action  int32
	status  int32 // of the process, if the error is fatal
	handler uint64
	handle  handle
	wide    int32
	object  uint64
	result  int32 // of the call, if it returns
	_       int32
	extra   uint64 // the fourth argument of a handler, after the text
	site    uint64 // where the program called, set by the front
	text    [1024]byte
}

// raise makes an error code of the error of a call, and tells the front what to do with it.
func (p *Process) raise(a *args, err error, out *outcome) int32 {
	c, code := classify(err)
	if code == 0 {
		code = p.abi.numberFor(numberCode, p.codes.add(c, fmt.Sprintf("%s: %v", a.name, err)))
	}
	out.result, out.status = code, int32(min(max(c, 1), 255))
	if a.called {
		out.result = 0
	}
	if a.abort {
		out.status = a.exit
	}
	on := a.owner
	if on != nil && p.unset(on) {
		on = nil
	}
	if on == nil && p.all != nil && !a.abort {
		on = p.defaultOwner()
	}
	p.direct(on, fmt.Sprintf("%s%s: %v", p.whoami(), a.name, err), out)
	return code
}

// defaultOwner returns the owner of errors of calls without a communicator: MPI_COMM_SELF (MPI-4.1
// section 9.3). Until MPI-3 it was MPI_COMM_WORLD, as in MPICH 4.0; its error handler counts
// if the program has set it.
func (p *Process) defaultOwner() owner {
	p.handlersMu.Lock()
	defer p.handlersMu.Unlock()
	return p.defaultOwnerLocked()
}

func (p *Process) defaultOwnerLocked() *comm {
	if p.all.handler != p.standard.unset {
		return p.all
	}
	return p.self
}

// unset reports whether the program has not set the error handler of an object.
func (p *Process) unset(on owner) bool {
	p.handlersMu.Lock()
	defer p.handlersMu.Unlock()
	return on.errhandler() == p.standard.unset
}

// direct fills in the outcome for an error of an owner.
func (p *Process) direct(on owner, text string, out *outcome) {
	var h *errhandler
	if on != nil {
		p.handlersMu.Lock()
		h = on.errhandler()
		p.handlersMu.Unlock()
	}
	switch {
	case h == nil || h.kind == fatalHandler || h.kind == abortHandler:
		out.action = outcomeFatal
		n := copy(out.text[:len(out.text)-1], text)
		out.text[n] = 0
	case h.kind == returnHandler:
		out.action = outcomeReturn
	default:
		out.action, out.handler = outcomeHandler, uint64(h.fn)
		self, object := on.self()
		out.handle, out.object, out.wide = self, uint64(object), 0
		if _, null := on.(*fileNull); null {
			out.wide, out.object = 1, p.abi.noFile
		} else if object != 0 {
			out.wide = 1
		}
		p.abi.adapt(out, h, self)
		n := copy(out.text[:len(out.text)-1], text)
		out.text[n] = 0
	}
}
