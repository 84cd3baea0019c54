package core

// Statuses (MPI-4.1 section 3.2.5).

import "github.com/muster-mpi/muster/mpi"

func statuses() map[string]handler {
	return map[string]handler{
		"Test_cancelled":       (*Process).testCancelled,
		"Status_set_cancelled": (*Process).statusSetCancelled,
		"Status_c2f":           (*Process).statusCopy,
		"Status_f2c":           (*Process).statusCopy,
		"Status_get_source":    func(p *Process, a *args) error { a.setInt(1, int(a.status(0).source)); return nil },
		"Status_get_tag":       func(p *Process, a *args) error { a.setInt(1, int(a.status(0).tag)); return nil },
		"Status_get_error":     func(p *Process, a *args) error { a.setInt(1, int(a.status(0).err)); return nil },
		"Status_set_source":    setField(func(b *abi) (uintptr, conversionKind) { return b.status.source, numberRank }),
		"Status_set_tag":       setField(func(b *abi) (uintptr, conversionKind) { return b.status.tag, numberTag }),
		"Status_set_error":     setField(func(b *abi) (uintptr, conversionKind) { return b.status.code, numberKinds }),
	}
}

// status is MPI_Status with the numbers of the core. The ABI says where its words are in the memory
// of the program.
type status struct {
	source, tag, err int32
	length           int64 // in bytes
	cancelled        bool
}

// emptyStatus is the status of calls without a message (MPI-4.1 section 3.7.3).
var emptyStatus = status{source: anySource, tag: anyTag}

// procNullStatus is the status of a receive from MPI_PROC_NULL (MPI-4.1 section 3.10).
var procNullStatus = status{source: procNull, tag: anyTag}

func newStatus(s mpi.Status) status {
	if s.Source == mpi.ProcNull {
		return procNullStatus
	}
	return status{source: int32(s.Source), tag: int32(s.Tag), length: int64(s.Bytes), cancelled: s.Cancelled}
}

// setStatus stores a status, unless the program ignores it. Single calls leave the error field as
// it is (MPI-4.1 section 3.2.5).
func (b *abi) setStatus(addr uintptr, s status) {
	if addr == 0 || addr == ignoreStatus {
		return
	}
	set(addr+b.status.source, b.numberFor(numberRank, s.source))
	set(addr+b.status.tag, b.numberFor(numberTag, s.tag))
	b.setLength(addr, s.length)
	b.setCancelled(addr, s.cancelled)
}

// setError stores the error field of a status.
func (b *abi) setError(addr uintptr, code int32) { set(addr+b.status.code, code) }

func (b *abi) setLength(addr uintptr, n int64) {
	set(addr+b.status.low, int32(n))
	high := addr + b.status.high
	if b.status.shared {
		set(high, *at[int32](high)&1|int32(n>>32)<<1)
	} else {
		set(high, int32(n>>32))
	}
}

func (b *abi) setCancelled(addr uintptr, v bool) {
	if b.status.shared {
		high := addr + b.status.high
		set(high, *at[int32](high)&^1|flag(v))
	} else {
		set(addr+b.status.cancelled, flag(v))
	}
}

// statusAt returns the status at an address.
func (b *abi) statusAt(addr uintptr) status {
	word := func(offset uintptr) int32 { return *at[int32](addr + offset) }
	s := status{
		source: b.number(numberRank, word(b.status.source)), tag: b.number(numberTag, word(b.status.tag)), err: word(b.status.code),
		length: int64(uint32(word(b.status.low))),
	}
	high := word(b.status.high)
	if b.status.shared {
		s.cancelled = high&1 != 0
		high = int32(uint32(high) >> 1)
	} else {
		s.cancelled = word(b.status.cancelled) != 0
	}
	s.length |= int64(uint32(high)) << 32
	return s
}

// setStatus stores a status at parameter i.
func (a *args) setStatus(i int, s status) { a.p.abi.setStatus(a.addr(i), s) }

// statusAddress returns the address of the status at parameter i, or 0.
func (a *args) statusAddress(i int) uintptr {
	addr := a.addr(i)
	if addr == 0 || addr == ignoreStatus {
		a.fail(errorf(errArg, "the address is not that of a status"))
		return 0
	}
	return addr
}

// status returns the status at parameter i.
func (a *args) status(i int) status {
	if addr := a.statusAddress(i); addr != 0 {
		return a.p.abi.statusAt(addr)
	}
	return status{}
}

func (p *Process) testCancelled(a *args) error {
	a.setFlag(1, a.status(0).cancelled)
	return nil
}

func (p *Process) statusSetCancelled(a *args) error {
	if addr := a.statusAddress(0); addr != 0 {
		p.abi.setCancelled(addr, a.int(1) != 0)
	}
	return nil
}

// setField is the handler of a function that stores a field of a status, whose numbers have a kind.
func setField(field func(*abi) (at uintptr, kind conversionKind)) handler {
	return func(p *Process, a *args) error {
		offset, kind := field(p.abi)
		v := int32(a.int(1))
		if kind != numberKinds {
			v = p.abi.numberFor(kind, v)
		}
		if addr := a.statusAddress(0); addr != 0 {
			set(addr+offset, v)
		}
		return nil
	}
}

// statusCopy converts a status between C and Fortran, which have the same fields.
func (p *Process) statusCopy(a *args) error {
	from, to := a.statusAddress(0), a.statusAddress(1)
	if a.err == nil {
		n := int(p.abi.status.size)
		copy(memory[byte](to, n), memory[byte](from, n))
	}
	return nil
}
