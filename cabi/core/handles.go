package core

// Handles of the MPICH ABI: the two highest bits say whether an object is null (0),
// predefined (1) or was made by a call (2), the next four bits the kind. Predefined
// datatypes have their size in the second byte.

import (
	"sync"
	"sync/atomic"
)

type handle int32

const (
	kindComm       = 0x04000000
	kindGroup      = 0x08000000
	kindDatatype   = 0x0c000000
	kindFile       = 0x10000000
	kindErrhandler = 0x14000000
	kindOp         = 0x18000000
	kindInfo       = 0x1c000000
	kindWin        = 0x20000000
	kindKeyval     = 0x24000000
	kindRequest    = 0x2c000000
	kindSession    = 0x38000000

	kindGrequestClass = 0x30000000

	predefined = 0x40000000
	made       = -0x80000000

	commNull       handle = kindComm
	commWorld      handle = predefined | kindComm
	commSelf       handle = predefined | kindComm | 1
	groupNull      handle = kindGroup
	groupEmpty     handle = predefined | kindGroup
	datatypeNull   handle = kindDatatype
	requestNull    handle = kindRequest
	messageNull    handle = kindRequest
	messageNoProc  handle = predefined | kindRequest
	opNull         handle = kindOp
	infoNull       handle = kindInfo
	infoEnv        handle = predefined | kindInfo | 1
	winNull        handle = kindWin
	keyvalInvalid  handle = kindKeyval
	errhandlerNull handle = kindErrhandler
	errorsFatal    handle = predefined | kindErrhandler
	errorsReturn   handle = predefined | kindErrhandler | 1
	errorsAbort    handle = predefined | kindErrhandler | 3
)

// Numbers of the MPICH ABI.
const (
	anySource = -2
	anyTag    = -1
	procNull  = -1
	root      = -3
	undefined = -32766

	inPlace      = ^uintptr(0)
	bottom       = uintptr(0)
	ignoreStatus = uintptr(1) // MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE
)

// table has the objects of one kind that calls have made. Numbers are used again, the one
// freed last first, as in MPICH. Every call looks objects up, so that takes no lock.
type table[T any] struct {
	kind  handle
	slots atomic.Pointer[[]atomic.Pointer[T]] // replaced by a larger one when it is full

	mu   sync.Mutex // guards changes
	used int        // slots that have ever had an object
	free []int
}

func newTable[T any](kind handle) table[T] { return table[T]{kind: made | kind} }

// slotMask selects the number of an object from its handle.
const slotMask = 0x03ffffff

// add stores an object and returns its handle.
func (t *table[T]) add(v *T) handle {
	t.mu.Lock()
	var i int
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		i = t.used
		t.used++
		t.grow()
	}
	(*t.slots.Load())[i].Store(v)
	t.mu.Unlock()
	return t.kind | handle(i)
}

// grow makes room for the slots that are used. The caller holds the lock.
func (t *table[T]) grow() {
	old := t.slots.Load()
	if old != nil && t.used <= len(*old) {
		return
	}
	slots := make([]atomic.Pointer[T], max(16, 2*t.used))
	if old != nil {
		for i := range *old {
			slots[i].Store((*old)[i].Load())
		}
	}
	t.slots.Store(&slots)
}

// slot returns the slot of a handle, or nil if there is none.
func (t *table[T]) slot(h handle) *atomic.Pointer[T] {
	slots := t.slots.Load()
	if i := int(h & slotMask); h&^slotMask == t.kind && slots != nil && i < len(*slots) {
		return &(*slots)[i]
	}
	return nil
}

// get returns the object of a handle, or nil.
func (t *table[T]) get(h handle) *T {
	if s := t.slot(h); s != nil {
		return s.Load()
	}
	return nil
}

// remove takes an object out of the table and returns it, or nil.
func (t *table[T]) remove(h handle) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slot(h)
	if s == nil {
		return nil
	}
	v := s.Swap(nil)
	if v != nil {
		t.free = append(t.free, int(h&slotMask))
	}
	return v
}
