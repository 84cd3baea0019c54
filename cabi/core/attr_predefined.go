package core

// Predefined attributes (MPI-4.1 sections 9.1.2, 11.2.1 and 12.2.6).

import "github.com/muster-mpi/muster/mpi"

// Predefined attributes of communicators. Fortran has the next numbers for the same
// attributes.
const (
	attrTagUB         handle = 0x64400001
	attrHost          handle = 0x64400003
	attrIO            handle = 0x64400005
	attrWtimeGlobal   handle = 0x64400007
	attrUniverseSize  handle = 0x64400009
	attrLastUsedCode  handle = 0x6440000b
	attrAppNum        handle = 0x6440000d
	attrConstants            = 7
	predefinedCommKey        = attrTagUB &^ 0xff
)

// inC returns the key that C uses.
func inC(key handle) handle { return (key - 1) | 1 }

// winConstants is an object with predefined attributes of windows: the address of the value
// of a key, as C gets it, and the value itself for Fortran.
type winConstants interface {
	windowAttr(key handle) (address, value uint64, ok bool)
}

// predefinedAttr returns the value of a predefined attribute; known is false for other keys.
func (p *Process) predefinedAttr(key handle, kind attrKind, o attributed, form attrForm) (value uint64, known, ok bool) {
	if kind == winAttr {
		if w, is := o.(winConstants); is && key>>26&0x3f == (predefined|kindKeyval)>>26 {
			address, value, ok := w.windowAttr(key)
			if form == pointerAttr {
				value = address
			}
			return value, true, ok
		}
		return 0, false, false
	}
	if kind != commAttr || key&^0xff != predefinedCommKey {
		return 0, false, false
	}
	i := int(key&0xff-1) / 2
	if key&0xff == 0 || i >= attrConstants {
		return 0, false, false
	}
	p.attrMu.Lock()
	defer p.attrMu.Unlock()
	n := 0
	ok = true
	switch inC(key) {
	case attrTagUB:
		n = mpi.MaxTag
	case attrHost:
		n = int(p.abi.numberFor(numberRank, procNull))
	case attrIO:
		n = int(p.abi.numberFor(numberRank, anySource))
	case attrWtimeGlobal:
		n = 0
	case attrUniverseSize:
		n, ok = p.universeSize()
	case attrLastUsedCode:
		n = int(p.codes.last(p.abi))
	case attrAppNum:
		n = p.appNum()
	}
	p.constants[i] = int32(n)
	if form == pointerAttr {
		return uint64(addressOf(p.constants[i : i+1])), true, ok
	}
	return uint64(int64(n)), true, ok
}
