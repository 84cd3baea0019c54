package core

// What the libraries of Open MPI for Fortran and C++ need besides MPI. They write to objects, whose
// addresses the handles are for them: the core maps memory there.

import "github.com/muster-mpi/muster/mpi"

// openShift is the least shift of handles that are addresses of memory: each has 512 bytes.
const openShift = 9

// mappedHandles is how many handles of a kind have memory.
const mappedHandles = 1 << 16

// Where in objects the libraries write, and what.
const (
	openOpFlags    = 0x54
	openOpFortran  = 2    // the function of an operation is in Fortran
	openRequestInC = 0xc0 // a byte, 0 if the functions of a generalized request are in Fortran
	openDispatch   = 0x78 // the function that calls an error handler in C++
)

// What they read: the number of a request in Fortran, that of a group, and its size; whether a communicator has two
// groups, and where they are. The groups of a communicator are at the end of its 512 bytes.
const (
	openRequest     = 0x68
	openGroupSize   = 0x10
	openGroupNumber = 0x18
	openCommFlags   = 0xe8
	openCommLocal   = 0xf8
	openCommRemote  = 0x100
	openLocalGroup  = 0x1a0
	openRemoteGroup = 0x1d0
)

// mapHandles maps the memory of handles. Without it programs in C run all the same.
func (b *abi) mapHandles() {
	b.mapped = true
	for h, n := range b.fortran {
		if h&kindMask == kindGroup {
			set(uintptr(b.words[h])+openGroupNumber, n)
		}
	}
	for _, kind := range []handle{kindComm, kindGroup, kindDatatype, kindWin, kindOp, kindRequest, kindErrhandler} {
		if mapMemoryAt(uintptr(uint64(uint32(made|kind))<<b.shift), mappedHandles<<b.shift) != nil {
			b.mapped = false
		}
	}
}

// memoryOf returns the memory of a handle that a call has made, or 0.
func (b *abi) memoryOf(h handle) uintptr {
	if !b.mapped || h&slotMask >= mappedHandles {
		return 0
	}
	return uintptr(b.word(h))
}

// describeGroup stores what is read of a new group.
func (b *abi) describeGroup(h handle, size int) {
	if at := b.memoryOf(h); at != 0 {
		set(at+openGroupNumber, int32(h))
		set(at+openGroupSize, int32(size))
	}
}

// describeRequest stores what is read of a persistent request, once it is complete.
func (b *abi) describeRequest(h handle) {
	if at := b.memoryOf(h); at != 0 {
		set(at+openRequest, int32(h))
	}
}

// describeComm stores what is read of a communicator.
func (b *abi) describeComm(h handle, c *mpi.Comm) {
	at := b.memoryOf(h)
	if h > 0 && b.mapped {
		at = uintptr(b.words[h])
	}
	if at == 0 {
		return
	}
	set(at+openCommFlags, flag(c.IsInter()))
	set(at+openCommLocal, at+openLocalGroup)
	set(at+openCommRemote, at+openRemoteGroup)
	set(at+openLocalGroup+openGroupSize, int32(c.Size()))
	if c.IsInter() {
		set(at+openRemoteGroup+openGroupSize, int32(c.RemoteSize()))
	}
}

// openLanguage is the language of an error handler.
type openLanguage int

const (
	openC       openLanguage = 0
	openCXX     openLanguage = 1
	openFortran openLanguage = 2
)

// adapt completes the outcome of an error for the handler of an object, as the ABI needs it.
func (b *abi) adapt(out *outcome, h *errhandler, self handle) {
	if b.native() {
		return
	}
	switch h.language {
	case openFortran: // it gets the address of a number
		out.handle = handle(b.fortranOf(self))
		return
	case openCXX:
		if memory := b.memoryOf(h.handle); memory != 0 {
			out.extra, out.handler = out.handler, *at[uint64](memory + openDispatch)
		}
	}
	if out.wide == 0 {
		out.wide, out.object = 1, b.word(self)
	}
}

func openInternals() map[string]handler {
	return map[string]handler{
		"ompi_errhandler_create":                 (*Process).openErrhandler,
		"ompi_errhandler_invoke":                 (*Process).openInvoke,
		"ompi_mpi_errors_are_fatal_comm_handler": func(p *Process, a *args) error { return errorf(errOther, "fatal error") },
		"ompi_datatype_match_size":               (*Process).openMatchSize,
		"ompi_op_set_cxx_callback":               (*Process).openSetCallback,
	}
}

// openErrhandler has the parameters kind of object, function, language; the result follows.
func (p *Process) openErrhandler(a *args) error {
	h := &errhandler{kind: userHandler, fn: a.addr(1), language: openLanguage(a.int(2))}
	a.v[3] = p.abi.word(p.addErrhandler(h))
	return nil
}

// openInvoke has the parameters handler, object, kind of object, code, message: an error that the
// library for Fortran has found. Its objects do not say their handlers.
func (p *Process) openInvoke(a *args) error {
	if p.all != nil {
		a.owner = p.all
	}
	return &failure{class: class(a.int(3)), code: p.abi.numberFor(numberCode, int32(a.int(3))), text: a.text(4)}
}

// openMatchSize has the parameters size, flags, language; the result follows.
func (p *Process) openMatchSize(a *args) error {
	class := p.abi.number(numberTypeclass, int32(a.int(1)>>12))
	h, ok := sizedTypes[typeClass(class)][a.int(0)]
	if !ok {
		h = datatypeNull
	}
	a.v[3] = p.abi.word(h)
	return nil
}

func (p *Process) openSetCallback(a *args) error {
	o := p.ops.get(a.handle(0))
	if o == nil {
		return errorf(errOp, "%#x is not an operation", uint32(a.handle(0)))
	}
	o.cxx = a.v[1]
	return nil
}
