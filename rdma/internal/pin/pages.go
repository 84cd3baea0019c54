package pin

import "sync"

// Pages counts the registrations of each page. The kernel does not: one munlock undoes
// every mlock of a page. So a page is locked with its first registration and unlocked
// with its last.
//
// The zero value is ready to use. Several devices of a process that lock the same page
// are not coordinated; the page is unlocked when the first of them unlocks it.
type Pages struct {
	mu     sync.Mutex
	counts map[uint64]uint32 // by page
}

const pageBits = 12 // the smallest page size; a larger page is counted in parts, which costs extra calls

// Lock locks the pages that mem touches. addr is the address of mem.
func (p *Pages) Lock(mem []byte, addr uint64) error {
	if len(mem) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts == nil {
		p.counts = map[uint64]uint32{}
	}
	first, last := addr>>pageBits, (addr+uint64(len(mem))-1)>>pageBits
	fresh := false
	for page := first; page <= last && !fresh; page++ {
		fresh = p.counts[page] == 0
	}
	// One call for all of mem, even if some pages are locked already: they stay locked.
	if fresh {
		if err := lock(mem); err != nil {
			return err
		}
	}
	for page := first; page <= last; page++ {
		p.counts[page]++
	}
	return nil
}

// Unlock undoes Lock. Pages with other registrations stay locked.
func (p *Pages) Unlock(mem []byte, addr uint64) {
	if len(mem) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	first, last := addr>>pageBits, (addr+uint64(len(mem))-1)>>pageBits
	begin, idle := 0, false // if idle, the pages from begin on have no registration left
	for page := first; page <= last; page++ {
		at := 0
		if page > first {
			at = int(page<<pageBits - addr)
		}
		if p.counts[page]--; p.counts[page] > 0 {
			if idle {
				unlock(mem[begin:at])
			}
			idle = false
			continue
		}
		delete(p.counts, page)
		if !idle {
			begin, idle = at, true
		}
	}
	if idle {
		unlock(mem[begin:])
	}
}

// Len returns the number of locked pages.
func (p *Pages) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.counts)
}
