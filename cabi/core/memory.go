package core

// Memory for the program (MPI-4.1 section 9.2).

import (
	"sync"
)

// allocations is the memory of MPI_Alloc_mem, by its address. It is not memory of Go, so that
// the program may store any pointers in it.
type allocations struct {
	mu  sync.Mutex
	mem map[uintptr][]byte
}

func (p *Process) allocMem(a *args) error {
	size := a.size(0)
	if a.handle(1) != infoNull {
		a.info(1)
	}
	a.results(2)
	if a.err != nil {
		return nil
	}
	mem, err := mapMemory(max(size, 1))
	if err != nil {
		return errorf(errNoMem, "%d bytes: %v", size, err)
	}
	m := &p.allocated
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mem == nil {
		m.mem = map[uintptr][]byte{}
	}
	m.mem[addressOf(mem)] = mem
	set(a.addr(2), uint64(addressOf(mem)))
	return nil
}

func (p *Process) freeMem(a *args) error {
	if a.addr(0) == 0 {
		return nil
	}
	m := &p.allocated
	m.mu.Lock()
	defer m.mu.Unlock()
	mem, ok := m.mem[a.addr(0)]
	if !ok {
		return errorf(errBase, "%#x is not memory of MPI_Alloc_mem", a.addr(0))
	}
	delete(m.mem, a.addr(0))
	return unmapMemory(mem)
}
