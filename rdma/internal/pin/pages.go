package pin

import "sync"

// Pages counts the registrations of each page. The kernel does not: one munlock undoes
// every mlock of a page, so a page is locked with its first registration and unlocked
// with its last.
//
// The zero value is ready. Several devices of a process that lock the same page do not
// know of each other; the page is unlocked when the first of them gives it up.
type Pages struct {
	mu     sync.Mutex
	counts map[uint64]uint32 // by page
}

const pageBits = 12 // the smallest page there is: a larger one is counted in parts, which costs a call more

// Lock locks the pages that mem touches, addr is its address.
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
	// One call for all of it, also if some are locked: they stay so.
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

// Unlock gives up what Lock got. Pages that others have registered stay locked.
func (p *Pages) Unlock(mem []byte, addr uint64) {
	if len(mem) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	first, last := addr>>pageBits, (addr+uint64(len(mem))-1)>>pageBits
	begin, idle := 0, false // bytes from begin on lie in pages that nobody has registered
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

// Len is the number of pages that are locked.
func (p *Pages) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.counts)
}
