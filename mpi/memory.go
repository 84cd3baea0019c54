package mpi

// Memory for messages (MPI-4.1 section 9.2): mapped outside of Go's heap, and
// registered once with a network device that needs registration.

import (
	"sync"
)

// allocations is the memory of a world that Alloc has returned and Free has not
// released.
type allocations struct {
	mu sync.Mutex
	by map[*byte]mapping // by the first byte
}

// mapping is the memory that the system returned, and the part of it that the user has.
type mapping struct{ whole, used []byte }

// Alloc returns memory for n elements, all zero, from which messages are sent and
// into which they are received at the lowest cost. The memory is outside of Go's heap
// and page-aligned. It has huge pages if it is large and the system has some. If the
// network device needs registered memory, Alloc registers it, once.
//
// Ordinary slices work as well, and the library keeps the registrations of those that
// are used often. Alloc is for large buffers with a long lifetime.
//
// The memory is not garbage-collected; release it with [Free]. Alloc is a local call.
// The memory outlives Finalize, so that a program can read its results after that;
// Free works then, too.
func Alloc[T Elem](c *Comm, n int) ([]T, error) {
	const op = "Alloc"
	if err := admit[T](&c.w.types); err != nil {
		return nil, c.refuse(ErrType, op, "%w", err)
	}
	if n < 0 {
		return nil, c.refuse(ErrCount, op, "memory for %d elements", n)
	}
	size := sizeOf[T]()
	if n == 0 || size == 0 {
		return make([]T, n), nil
	}
	if n > maxAlloc/size {
		return nil, c.refuse(ErrTooLarge, op, "%d elements of %d bytes exceed the address space", n, size)
	}
	mem, err := c.w.alloc(n * size)
	if err != nil {
		return nil, c.refuse(ErrNoMem, op, "%d elements of %d bytes: %w", n, size, err)
	}
	return elemsOf[T](mem, n), nil
}

// maxAlloc leaves room for rounding up.
const maxAlloc = 1 << 46

func (w *World) alloc(size int) ([]byte, error) {
	m, err := mapMemory(size)
	if err != nil {
		return nil, err
	}
	if err := w.registerFixed(m.used); err != nil {
		_ = unmapMemory(m.whole)
		return nil, err
	}
	a := &w.memory
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by == nil {
		a.by = map[*byte]mapping{}
	}
	a.by[&m.used[0]] = m
	return m.used, nil
}

// Free releases memory that [Alloc] has returned for a communicator of the same world.
// No operation may use it any more. Accessing it after Free ends the program, as
// accessing any unmapped memory does. Freeing it twice is an error of class ErrBuffer,
// unless Alloc has returned the same address again meanwhile.
func Free[T Elem](c *Comm, mem []T) error {
	const op = "Free"
	if cap(mem) == 0 || sizeOf[T]() == 0 {
		return nil // Alloc did not map anything
	}
	b := rawBytes(mem[:1])
	w, a := c.w, &c.w.memory
	a.mu.Lock()
	defer a.mu.Unlock()
	m, ok := a.by[&b[0]]
	if !ok {
		return c.refuse(ErrBuffer, op, "%d elements are not memory that Alloc has returned for this world: "+
			"free the slice as Alloc gave it, once", len(mem))
	}
	if err := w.dropFixed(m.used); err != nil {
		return c.refuse(ErrBuffer, op, "%d bytes: %w; complete the requests first", len(m.used), err)
	}
	delete(a.by, &b[0])
	if err := unmapMemory(m.whole); err != nil {
		return c.refuse(ErrIntern, op, "%d bytes: %w", len(m.used), err)
	}
	return nil
}

// Forget removes cached registrations of mem, which the program has mapped itself and
// is about to unmap. Without it, a cached registration with a network device would
// refer to pages that no longer exist. Slices that Go or Alloc has allocated do not
// need it.
func Forget[T Elem](c *Comm, mem []T) error {
	const op = "Forget"
	b, err := bytesOf(&c.w.types, mem)
	if err != nil {
		return c.refuse(ErrType, op, "%w", err)
	}
	if err := c.w.dropFixed(b); err != nil {
		return c.refuse(ErrBuffer, op, "%d bytes: %w; complete the requests first", len(b), err)
	}
	return nil
}

// registerFixed registers memory with the network device, if that needs registration.
// Shared memory does not.
func (w *World) registerFixed(mem []byte) error { return w.e.RegisterFixed(mem) }

// dropFixed removes all registrations of memory that is about to be unmapped. It fails
// if an operation still uses one.
func (w *World) dropFixed(mem []byte) error { return w.e.DropFixed(mem) }
