package mpi

// Memory for messages (MPI-4.1 section 9.2): mapped outside of Go's heap, and
// registered once with the network device where that needs registration.

import (
	"sync"
)

// allocations is the memory of a world that Alloc gave out and Free has not
// taken back.
type allocations struct {
	mu sync.Mutex
	by map[*byte]mapping // by the first byte
}

// mapping is what the system gave, and the part of it that the user has.
type mapping struct{ whole, used []byte }

// Alloc gives memory for n elements, all zero, that messages can be sent from
// and received into at the least cost: it lies outside of Go's heap, starts at
// a page, has huge pages where it is large and the system has some, and where the
// network device must know memory beforehand, this is done here, once.
//
// Ordinary slices work as well, and the library remembers those that are used
// often. Alloc is for large buffers that live long.
//
// The memory is not collected: give it back with Free. The call concerns this
// rank alone. The memory stays when the rank leaves the job, so that results
// can be read after Finalize; Free works then, too.
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
		return nil, c.refuse(ErrTooLarge, op, "%d elements of %d bytes are more than an address can tell", n, size)
	}
	mem, err := c.w.alloc(n * size)
	if err != nil {
		return nil, c.refuse(ErrNoMem, op, "%d elements of %d bytes: %w", n, size, err)
	}
	return elemsOf[T](mem, n), nil
}

// maxAlloc leaves room for rounding.
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

// Free gives memory back that Alloc on a communicator of the same world has
// given out. No operation may use it any more, and nothing may touch it after:
// that ends the program, as reading any unmapped memory does. Freeing it a second
// time is an error of class ErrBuffer, unless Alloc has given out the same place
// again meanwhile.
func Free[T Elem](c *Comm, mem []T) error {
	const op = "Free"
	if cap(mem) == 0 || sizeOf[T]() == 0 {
		return nil // Alloc made it without a mapping
	}
	b := rawBytes(mem[:1])
	w, a := c.w, &c.w.memory
	a.mu.Lock()
	defer a.mu.Unlock()
	m, ok := a.by[&b[0]]
	if !ok {
		return c.refuse(ErrBuffer, op, "%d elements do not start where Alloc has given out memory on this world: "+
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

// Forget tells the library that mem, which the program has mapped itself, is
// about to be unmapped: where memory must be registered with the network
// device, a registration that is kept for later would otherwise go on naming
// pages that are gone. Slices that Go has allocated need no such call, nor do
// those of Alloc.
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

// registerFixed makes memory known to the network device, if there is one that
// must know it. Shared memory need not.
func (w *World) registerFixed(mem []byte) error { return w.e.RegisterFixed(mem) }

// dropFixed ends every registration of memory that is about to be unmapped. It
// fails if an operation still uses one.
func (w *World) dropFixed(mem []byte) error { return w.e.DropFixed(mem) }
