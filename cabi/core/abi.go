package core

// The ABI of the program. The core has the handles and numbers of MPICH's; what the front passes
// for another one is converted here: scalars before and after a call, by the kinds that
// functions.txt states, and what is in memory when a function reads or writes it.

// abiTable is what an ABI has chosen. gen makes it from a file of folder abi.
type abiTable struct {
	title   string
	inPlace int64
	status  statusLayout
	limits  limits
	numbers [numberKinds][]pairOfNumbers // none: those of the core
}

// limits are the lengths of texts, with the terminating NUL, the last error code, and what a
// buffered message needs besides its data.
type limits struct{ processorName, libraryVersion, errorString, objectName, portName, lastCode, bsendOverhead int }

type pairOfNumbers struct{ theirs, ours int32 }

// statusLayout is where the 32-bit words of a status are, in bytes. If shared is set, the cancelled
// flag is the lowest bit of high.
type statusLayout struct {
	low, high, source, tag, code, cancelled, size uintptr
	shared                                        bool
}

// abi is the ABI of the program.
type abi struct {
	*abiTable
	shift      int // of the number of a handle that a call has made; -1: handles are numbers
	theirs     [numberKinds]map[int32]int32
	ours       [numberKinds]map[int32]int32
	predefined map[uint64]handle
	words      map[handle]uint64
	fortran    map[handle]int32 // numbers of predefined handles
	noMessage  uint64           // MPI_MESSAGE_NULL, whose number in the core is that of MPI_REQUEST_NULL
	noFile     uint64           // MPI_FILE_NULL
	mapped     bool             // handles have memory (abi_open.go)
}

// conversion is what is converted of a parameter.
type conversion struct {
	kind conversionKind
	at   int
	how  direction
}

// conversionKind is a kind of numbers, or one of these.
type conversionKind int

const (
	aHandle conversionKind = numberKinds + iota
	aFile
	aBuffer
)

type direction int

const (
	in    direction = iota
	out             // a pointer to a result
	inout           // a pointer to a number that is read and written
)

// nativeABI is the ABI whose numbers the core uses.
const nativeABI = "mpich"

func newABI(name string, shift int) *abi {
	b := &abi{abiTable: abiTables[name], shift: shift}
	if b.abiTable == nil || shift < 0 {
		return b
	}
	b.predefined, b.words, b.fortran = map[uint64]handle{}, map[handle]uint64{}, map[handle]int32{}
	for kind, list := range b.numbers {
		b.theirs[kind], b.ours[kind] = map[int32]int32{}, map[int32]int32{}
		for _, p := range list {
			b.ours[kind][p.theirs] = p.ours
			if _, twice := b.theirs[kind][p.ours]; !twice {
				b.theirs[kind][p.ours] = p.theirs
			}
		}
	}
	return b
}

// addPredefined notes a predefined handle. The first of several with the same number is what the
// program gets for it.
func (b *abi) addPredefined(word uint64, h handle, fortran int32, kind string) {
	b.predefined[word] = h
	switch {
	case kind == "file":
		b.noFile = word
		return
	case kind == "message" && h == messageNull:
		b.noMessage = word
		return
	}
	if _, twice := b.words[h]; !twice {
		b.words[h], b.fortran[h] = word, fortran
	}
}

func (b *abi) native() bool { return b.shift < 0 }

// invalid is a number that no function accepts.
const invalid = -99999

// number converts a number of the program. What the ABI does not define is not taken for what the
// core defines.
func (b *abi) number(kind conversionKind, v int32) int32 {
	if b.native() {
		return v
	}
	switch kind {
	case numberCode:
		return b.codeIn(v)
	case numberAssert, numberAmode:
		return bitsOf(v, b.ours[kind])
	}
	if n, ok := b.ours[kind][v]; ok {
		return n
	}
	if _, other := b.theirs[kind][v]; other {
		return invalid
	}
	return v
}

// numberFor converts a number for the program.
func (b *abi) numberFor(kind conversionKind, v int32) int32 {
	if b.native() {
		return v
	}
	switch kind {
	case numberCode:
		return b.codeFor(v)
	case numberAssert, numberAmode:
		return bitsOf(v, b.theirs[kind])
	}
	if n, ok := b.theirs[kind][v]; ok {
		return n
	}
	return v
}

// bitsOf converts a number each bit of which has a meaning.
func bitsOf(v int32, table map[int32]int32) (n int32) {
	for from, to := range table {
		if v&from != 0 {
			n |= to
			v &^= from
		}
	}
	if v != 0 {
		n |= 1 << 30 // no function accepts it
	}
	return n
}

// codeIn converts an error class or code of the program. Codes of the library are classes in ABIs
// other than the core's: programs that were built for Open MPI compare them.
func (b *abi) codeIn(v int32) int32 {
	if v >= firstAdded {
		return v
	}
	if n, ok := b.ours[numberCode][v]; ok {
		return n
	}
	return lastCode // a class that nobody has
}

// codeFor converts an error class or code for the program.
func (b *abi) codeFor(v int32) int32 {
	if v <= 0 || v >= firstAdded {
		return v
	}
	if n, ok := b.theirs[numberCode][v&classMask]; ok {
		return n
	}
	return b.theirs[numberCode][int32(errOther)]
}

// decode converts the arguments of a call.
func (b *abi) decode(a *args, list []conversion) {
	for _, c := range list {
		switch {
		case c.how == out:
		case c.kind == aHandle:
			a.v[c.at] = uint64(b.handleOf(a.v[c.at]))
		case c.kind == aBuffer:
			if a.v[c.at] == uint64(b.inPlace) {
				a.v[c.at] = uint64(inPlace)
			}
		case c.kind == aFile:
			if a.v[c.at] == b.noFile {
				a.v[c.at] = 0
			}
		case c.how == inout:
			if addr := a.addr(c.at); addr != 0 {
				set(addr, b.number(c.kind, *at[int32](addr)))
			}
		default:
			a.v[c.at] = uint64(b.number(c.kind, int32(a.int(c.at))))
		}
	}
}

// encode converts the results of a call. Only what is read and written is converted if it failed.
func (b *abi) encode(a *args, list []conversion, failed bool) {
	for _, c := range list {
		if addr := a.addr(c.at); addr != 0 && (c.how == inout || c.how == out && !failed) {
			set(addr, b.numberFor(c.kind, *at[int32](addr)))
		}
	}
}

// handleOf returns the handle of a word of the program. It is 0, which nothing has, for words that
// are no handles.
func (b *abi) handleOf(word uint64) handle {
	switch {
	case b.native():
		return handle(int32(word))
	case word>>(31+b.shift) == 1:
		return handle(int32(word >> b.shift))
	}
	return b.predefined[word]
}

// word returns what the program gets for a handle.
func (b *abi) word(h handle) uint64 {
	if b.native() {
		return uint64(uint32(h))
	}
	if h >= 0 || h&^7 == made|kindDatatype { // the pairs look like made by a call
		if w, ok := b.words[h]; ok {
			return w
		}
		if h >= 0 {
			return b.words[h&kindMask] // the null handle of this kind
		}
	}
	return uint64(uint32(h)) << b.shift
}

// fortranOf returns the number that Fortran has for a handle.
func (b *abi) fortranOf(h handle) int32 {
	if n, ok := b.fortran[h]; ok {
		return n
	}
	return int32(h)
}

// kindMask selects the kind of a handle.
const kindMask handle = 0x3c000000

// handleSize returns the bytes of a handle in memory.
func (b *abi) handleSize() uintptr {
	if b.native() {
		return 4
	}
	return 8
}

// handleAt is a handle in the memory of the program.
type handleAt struct {
	abi  *abi
	addr uintptr
}

func (r handleAt) get() handle {
	if r.abi.native() {
		return *at[handle](r.addr)
	}
	return r.abi.handleOf(*at[uint64](r.addr))
}

func (r handleAt) set(h handle) {
	if r.abi.native() {
		*at[handle](r.addr) = h
	} else {
		*at[uint64](r.addr) = r.abi.word(h)
	}
}

// setNoMessage stores MPI_MESSAGE_NULL.
func (r handleAt) setNoMessage() {
	if r.abi.native() {
		*at[handle](r.addr) = messageNull
	} else {
		*at[uint64](r.addr) = r.abi.noMessage
	}
}

// handleArray is an array of handles in the memory of the program.
type handleArray struct {
	abi  *abi
	addr uintptr
	n    int
}

func (l handleArray) at(i int) handleAt {
	return handleAt{l.abi, l.addr + uintptr(i)*l.abi.handleSize()}
}

// all returns the handles.
func (l handleArray) all() []handle {
	out := make([]handle, l.n)
	for i := range out {
		out[i] = l.at(i).get()
	}
	return out
}
