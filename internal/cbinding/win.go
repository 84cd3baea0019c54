package cbinding

import (
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/rma"
)

// WinConfig says how a window is made.
type WinConfig struct {
	// Memory is the memory of the calling rank. If it is nil, the window allocates Bytes.
	Memory []byte
	Bytes  int
	// Existing, Shared and Dynamic select what mpi.CreateWin, AllocateSharedWin and
	// CreateDynamicWin make; without them, the window is one of AllocateWin.
	Existing, Shared, Dynamic bool
	// Contiguous places the memory of each rank of a shared window directly behind that of
	// the rank before, if the ranks are processes.
	Contiguous bool
	// Elements are the types of elements of accumulates, each with a code that is not 0, the same
	// on all ranks. Numbers of 4 and 8 bytes with a known kind are updated by atomic instructions;
	// Custom does everything else.
	Elements []rma.Elements
}

// Win is a window of bytes, where each call says what its elements are. Displacements count bytes;
// in dynamic windows they are addresses of the target.
type Win interface {
	// Window returns the window for all other calls: a *mpi.Win[byte].
	Window() any
	// Open reports whether the memory of a rank may be accessed now.
	Open(rank int) bool
	// AttachAt adds memory to a dynamic window. Its address is the displacement for other ranks.
	AttachAt(address uintptr, mem []byte) error
	// DetachAt removes memory from a dynamic window.
	DetachAt(address uintptr) error
	// LockNoCheck begins an epoch as mpi.Win.Lock does, but acquires no lock: the program asserts
	// that no other rank holds or requests a conflicting one (MPI_MODE_NOCHECK, MPI-4.1 section
	// 12.5.5). LockAllNoCheck does so for all ranks.
	LockNoCheck(target int) error
	LockAllNoCheck() error

	// BeginRequest begins the accesses of a call with a request. The target must be locked.
	BeginRequest(name string, target int) (Access, error)
	// Request returns the mpi.Request for the accesses since BeginRequest.
	Request(a Access) any
	// PutBytes writes buf into the memory of target, GetBytes reads it.
	PutBytes(a Access, buf []byte, target, disp int) error
	GetBytes(a Access, buf []byte, target, disp int) error
	// Combine combines elements of the type with a code with those of target. If result is
	// not nil, it gets the previous ones; buf is nil with rma.NoOp.
	Combine(a Access, code uint8, op rma.Op, buf, result []byte, target, disp int) error
	// CompareSwap stores value at disp of target if expected is there. result gets what was
	// there before.
	CompareSwap(a Access, code uint8, expected, value, result []byte, target, disp int) error
}

// Access is one call that accesses the memory of a rank, perhaps at several places.
type Access struct {
	Name  string        // of the function
	Batch *engine.Batch // of calls with a request; nil without, and in memory that the rank has mapped
}
