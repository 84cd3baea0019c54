package core

// Error codes and classes, and those that the program adds (MPI-4.1 sections 9.4 and 9.5).

import (
	"fmt"
	"sync"
)

// codes has the texts of the last errors, and the classes and codes that the program added.
//
// A code of the library is the class and, from bit 8 up, the number of its text, so that
// MPI_Error_string can say what failed. Codes and classes of the program are numbered from
// firstAdded up.
type codes struct {
	mu    sync.Mutex
	next  int32
	texts [recentErrors]string
	added []addedCode
}

// addedCode is a class or a code that the program added.
type addedCode struct {
	class   class // itself, if it is a class
	text    string
	codes   int // of a class: codes that belong to it
	texted  bool
	deleted bool
}

const (
	recentErrors = 1 << 10
	textShift    = 8
	classMask    = 1<<textShift - 1
	firstAdded   = lastCode + 1
)

func errorCodes() map[string]handler {
	return map[string]handler{
		"Error_class":              (*Process).errorClass,
		"Error_string":             (*Process).errorString,
		"Add_error_class":          (*Process).addErrorClass,
		"Add_error_code":           (*Process).addErrorCode,
		"Add_error_string":         (*Process).addErrorString,
		"MPIX_Delete_error_class":  (*Process).deleteErrorClass,
		"MPIX_Delete_error_code":   (*Process).deleteErrorCode,
		"MPIX_Delete_error_string": (*Process).deleteErrorString,
		"Remove_error_class":       (*Process).deleteErrorClass,
		"Remove_error_code":        (*Process).deleteErrorCode,
		"Remove_error_string":      (*Process).deleteErrorString,
	}
}

// classTexts are the texts of the error classes.
var classTexts = map[class]string{
	0: "no error", errBuffer: "invalid buffer", errCount: "invalid count", errType: "invalid datatype", errTag: "invalid tag",
	errComm: "invalid communicator", errRank: "invalid rank", errRoot: "invalid root", errGroup: "invalid group",
	errOp: "invalid reduction operation", errTopology: "invalid topology", errDims: "invalid dimensions",
	errArg: "invalid argument", errUnknown: "unknown error", errTruncate: "message truncated", errOther: "other error",
	errIntern: "internal error", errInStatus: "the error code is in the status", errPending: "pending request",
	errRequest: "invalid request", 20: "access denied", 21: "invalid access mode of a file", 22: "invalid file name",
	23: "error in the conversion of data", 24: "the data representation is already defined", 25: "the file exists",
	26: "the file is in use", errFile: "invalid file", errInfo: "invalid info object", errInfoKey: "invalid info key",
	errInfoValue: "invalid info value", errInfoNoKey: "no such info key", 32: "error of input or output",
	errName: "name not published", errNoMem: "out of memory", 35: "arguments differ between ranks", 36: "no space left",
	37: "no such file", errPort: "invalid port", 39: "quota exceeded", 40: "read-only file or file system",
	errService: "invalid service name", errSpawn: "cannot start processes", 43: "unsupported data representation",
	errUnsupported: "unsupported operation", errWin: "invalid window", errBase: "invalid base address",
	errLockType: "invalid lock type", errKeyval: "invalid key of attributes", errRMAConflict: "conflicting accesses to a window",
	errRMASync: "wrong synchronization of a window", errSize: "invalid size", errDisp: "invalid displacement",
	errAssert: "invalid assertion", errRMARange: "memory outside of the window", errRMAAttach: "memory cannot be attached",
	errRMAShared: "memory cannot be shared", errRMAFlavor: "wrong kind of window", errSession: "invalid session",
	errProcAborted: "a process has ended", errTooLarge: "value too large", errProcFailed: "a process has failed",
	errRevoked: "the communicator was revoked",
}

// add records an error and returns its code.
func (k *codes) add(c class, text string) int32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c >= firstAdded {
		return int32(c)
	}
	k.next = k.next%(1<<20) + 1 // codes stay below lastCode
	k.texts[k.next%recentErrors] = text
	return int32(c) | k.next<<textShift
}

// lookup returns the class and the text of a code.
func (k *codes) lookup(code int32) (class, string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.find(code); e != nil {
		return e.class, e.text
	}
	c := class(code & classMask)
	text, ok := classTexts[c]
	if !ok || code < 0 || code >= firstAdded {
		return errUnknown, fmt.Sprintf("%d is not an error code", code)
	}
	if n := code >> textShift; n != 0 && k.texts[n%recentErrors] != "" {
		text += ": " + k.texts[n%recentErrors]
	}
	return c, text
}

// find returns a code or class of the program, or nil. The lock is held.
func (k *codes) find(code int32) *addedCode {
	if i := int(code) - firstAdded; i >= 0 && i < len(k.added) && !k.added[i].deleted {
		return &k.added[i]
	}
	return nil
}

// last returns the largest code in use, for MPI_LASTUSEDCODE.
func (k *codes) last(b *abi) int32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(k.added) - 1; i >= 0; i-- {
		if !k.added[i].deleted {
			return int32(firstAdded + i)
		}
	}
	return int32(b.limits.lastCode)
}

// append adds a class or code, and returns its number. The lock is held.
func (k *codes) append(e addedCode) int32 {
	for i := range k.added {
		if k.added[i].deleted {
			k.added[i] = e
			return int32(firstAdded + i)
		}
	}
	k.added = append(k.added, e)
	return int32(firstAdded + len(k.added) - 1)
}

func (p *Process) errorClass(a *args) error {
	c, _ := p.codes.lookup(int32(a.int(0)))
	a.setInt(1, int(c))
	return nil
}

func (p *Process) errorString(a *args) error {
	_, text := p.codes.lookup(int32(a.int(0)))
	a.setInt(2, a.setText(1, text, p.abi.limits.errorString))
	return nil
}

func (p *Process) addErrorClass(a *args) error {
	k := &p.codes
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.append(addedCode{})
	k.find(n).class = class(n)
	a.setInt(0, int(n))
	return nil
}

func (p *Process) addErrorCode(a *args) error {
	k := &p.codes
	k.mu.Lock()
	defer k.mu.Unlock()
	c := class(a.int(0))
	of := k.find(int32(c))
	if _, known := classTexts[c]; !known && (of == nil || of.class != c) {
		return errorf(errArg, "%d is not an error class", c)
	}
	if of != nil {
		of.codes++
	}
	a.setInt(1, int(k.append(addedCode{class: c})))
	return nil
}

func (p *Process) addErrorString(a *args) error {
	text := a.text(1)
	k := &p.codes
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.find(int32(a.int(0)))
	if e == nil {
		return errorf(errArg, "the program did not add the error code %d", a.int(0))
	}
	e.text, e.texted = text[:min(len(text), p.abi.limits.errorString-1)], true
	return nil
}

func (p *Process) deleteErrorClass(a *args) error {
	return p.deleteError(a, func(e *addedCode, isClass bool) bool {
		e.deleted = isClass && e.codes == 0 && !e.texted
		return e.deleted
	})
}

func (p *Process) deleteErrorCode(a *args) error {
	return p.deleteError(a, func(e *addedCode, isClass bool) bool {
		if isClass || e.texted {
			return false
		}
		if of := p.codes.find(int32(e.class)); of != nil {
			of.codes--
		}
		e.deleted = true
		return true
	})
}

func (p *Process) deleteErrorString(a *args) error {
	return p.deleteError(a, func(e *addedCode, isClass bool) bool {
		had := e.texted
		e.text, e.texted = "", false
		return had
	})
}

func (p *Process) deleteError(a *args, change func(e *addedCode, isClass bool) bool) error {
	k := &p.codes
	k.mu.Lock()
	defer k.mu.Unlock()
	n := int32(a.int(0))
	e := k.find(n)
	if e == nil || !change(e, int32(e.class) == n) {
		return errorf(errArg, "%d cannot be deleted: the program did not add it, or it is in use", n)
	}
	return nil
}
