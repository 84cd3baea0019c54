package mpi

// The call site of a call: the line of the program that made it. Finding it must not cost
// more than a fraction of the call, so a rank has a table of return addresses:
//
//	siteOf     walks up the return addresses on the stack. The table knows which belong
//	           to this package; the first other one has the site
//	add        for an address that is not in the table: looks up functions and lines
//
// A call from C has the address to which the call returns there, and the name of the
// function of C ([callProfile.enter]).

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/muster-mpi/muster/prof"
)

const (
	siteDepth = 12      // return addresses that are examined
	siteSlots = 1 << 11 // of the table, a power of two
	siteLimit = siteSlots / 2
)

// siteTable maps return addresses to call sites. It is read without a lock.
type siteTable struct {
	slots   [siteSlots]siteSlot
	unknown callSite // of calls that have no place in the table

	mu   sync.Mutex
	used int
	all  []*callSite
}

type siteSlot struct {
	pc   atomic.Uintptr
	site *callSite // nil for an address within this package; written before pc
}

// callSite is a place from which the program calls a function, and the statistics of these
// calls, which callProfile.mu guards.
type callSite struct {
	name           string
	kind           CallKind
	line, function string  // of Go
	pc             uintptr // of C; else 0
	next           atomic.Pointer[callSite]

	calls, time, longest uint64 // in ns
	messages, bytes      uint64
	shortest, largest    uint64 // message
	sizes                [prof.SizeClasses]uint32
	overlap              prof.Overlap
}

func (t *siteTable) slot(pc uintptr) *siteSlot {
	for i := uint64(pc) * 0x9e3779b97f4a7c15 >> 53; ; i++ {
		s := &t.slots[i%siteSlots]
		if at := s.pc.Load(); at == pc || at == 0 {
			return s
		}
	}
}

// siteOf returns the call site of a call of the program.
func (t *siteTable) siteOf(name string, kind CallKind) *callSite {
	var pcs [siteDepth]uintptr
	n := framePCs(&pcs)
	for _, pc := range pcs[:n] {
		s := t.slot(pc)
		if s.pc.Load() == 0 {
			return t.add(pcs[:n], name, kind)
		}
		if s.site != nil {
			return t.siteNamed(s.site, name, kind)
		}
	}
	return &t.unknown
}

// siteNamed returns the site of a name. One instruction can call several functions, by a
// function value.
func (t *siteTable) siteNamed(s *callSite, name string, kind CallKind) *callSite {
	for s.name != name {
		next := s.next.Load()
		if next == nil {
			return t.addNamed(s, name, kind)
		}
		s = next
	}
	return s
}

func (t *siteTable) addNamed(s *callSite, name string, kind CallKind) *callSite {
	t.mu.Lock()
	defer t.mu.Unlock()
	for next := s.next.Load(); next != nil; next = s.next.Load() {
		if s = next; s.name == name {
			return s
		}
	}
	if len(t.all) == siteLimit {
		return &t.unknown
	}
	n := &callSite{name: name, kind: kind, line: s.line, function: s.function, pc: s.pc}
	t.all = append(t.all, n)
	s.next.Store(n)
	return n
}

// add adds the return addresses of this package and the first other one.
func (t *siteTable) add(pcs []uintptr, name string, kind CallKind) *callSite {
	f := userFrame()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pc := range pcs {
		fn := runtime.FuncForPC(pc - 1) // the call is before the return address
		user := fn != nil && f.Entry != 0 && fn.Entry() == f.Entry
		s := t.slot(pc)
		if s.pc.Load() == 0 {
			if t.used == siteLimit {
				break
			}
			t.used++
			if user {
				s.site = &callSite{name: name, kind: kind, line: lastParts(f.File) + ":" + strconv.Itoa(f.Line), function: lastElement(f.Function)}
				t.all = append(t.all, s.site)
			}
			s.pc.Store(pc)
		}
		if user && s.site != nil && s.site.name == name {
			return s.site
		}
		if user {
			break // another name: rare, and found at the next call
		}
	}
	return &t.unknown
}

// foreign returns the site of a call from C.
func (t *siteTable) foreign(pc uintptr, name string, kind CallKind) *callSite {
	s := t.slot(pc)
	if s.pc.Load() != 0 && s.site != nil {
		return t.siteNamed(s.site, name, kind)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s = t.slot(pc); s.pc.Load() == 0 && t.used < siteLimit {
		t.used++
		s.site = &callSite{name: name, kind: kind, pc: pc}
		t.all = append(t.all, s.site)
		s.pc.Store(pc)
		return s.site
	}
	return &t.unknown
}

// userFrame returns the innermost frame that is not of this package. Its Entry is that of
// the function into which others may have been inlined.
func userFrame() (f runtime.Frame) {
	var pcs [4 * siteDepth]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for more := true; more; {
		if f, more = frames.Next(); f.File != "" && !isOwn(f.Function) {
			return f
		}
	}
	return runtime.Frame{}
}

// lastElement returns the name of a function with the last element of its import path.
func lastElement(function string) string {
	name, _, _ := strings.Cut(function, "[") // type arguments have slashes
	return function[strings.LastIndexByte(name, '/')+1:]
}
