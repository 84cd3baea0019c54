package core

// Decoding of arguments. The methods of args take the position of a parameter. A handle that
// is not valid sets err, which the dispatcher returns: functions decode all arguments and
// check err once.

type args struct {
	p     *Process
	name  string  // of the function, as MPI_Send
	site  uintptr // where the program called
	wide  bool    // counts and displacements in arrays are MPI_Count (functions with _c)
	v     *[maxArgs]uint64
	err   error
	owner owner // whose error handler gets an error
	// called says that the error is for an error handler only: the call succeeds.
	called bool
	abort  bool  // the error is fatal whatever the error handler is
	exit   int32 // the status of the process, if abort is set
}

// maxArgs is more than any function has.
const maxArgs = 16

func (a *args) addr(i int) uintptr  { return uintptr(a.v[i]) }
func (a *args) int(i int) int       { return int(int64(a.v[i])) }
func (a *args) handle(i int) handle { return handle(int32(a.v[i])) }
func (a *args) text(i int) string   { return text(a.addr(i)) }

// fail records the first error.
func (a *args) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// count returns a count, which must not be negative.
func (a *args) count(i int) int {
	n := a.int(i)
	if n < 0 {
		a.fail(errorf(errCount, "the count is %d", n))
		return 0
	}
	return n
}

// size returns the length of an array.
func (a *args) size(i int) int {
	n := a.int(i)
	if n < 0 {
		a.fail(errorf(errArg, "the length is %d", n))
		return 0
	}
	return n
}

// results fails if the address of a result or of an array is NULL.
func (a *args) results(positions ...int) {
	for _, i := range positions {
		if a.addr(i) == 0 {
			a.fail(errorf(errArg, "argument %d is NULL", i+1))
			return
		}
	}
}

// ints returns n numbers of an array of int, or of MPI_Count or MPI_Aint in functions with
// _c. It is nil if the address is NULL.
func (a *args) ints(i, n int) []int {
	if a.wide {
		return a.longs(i, n)
	}
	return a.shorts(i, n)
}

// shorts returns n numbers of an array of int, in functions with _c too.
func (a *args) shorts(i, n int) []int {
	if a.addr(i) == 0 {
		return nil
	}
	out := make([]int, max(n, 0))
	for k, v := range memory[int32](a.addr(i), n) {
		out[k] = int(v)
	}
	return out
}

// numbers is shorts for numbers that the ABI has chosen.
func (a *args) numbers(kind conversionKind, i, n int) []int {
	out := a.shorts(i, n)
	for k, v := range out {
		out[k] = int(a.p.abi.number(kind, int32(v)))
	}
	return out
}

// longs returns n numbers of an array of MPI_Aint or MPI_Count.
func (a *args) longs(i, n int) []int {
	if a.addr(i) == 0 {
		return nil
	}
	out := make([]int, max(n, 0))
	for k, v := range memory[int64](a.addr(i), n) {
		out[k] = int(v)
	}
	return out
}

// handles returns an array of n handles.
func (a *args) handles(i, n int) handleArray { return handleArray{a.p.abi, a.addr(i), max(n, 0)} }

// handleAt returns the handle whose address is parameter i.
func (a *args) handleAt(i int) handleAt { return handleAt{a.p.abi, a.addr(i)} }

// setInt stores an int; setCount an int, or an MPI_Count in functions with _c; setAint an
// MPI_Aint or MPI_Count; setFlag an int that is 0 or 1; setHandle a handle.
func (a *args) setInt(i, v int)  { set(a.addr(i), int32(v)) }
func (a *args) setAint(i, v int) { set(a.addr(i), int64(v)) }
func (a *args) setHandle(i int, h handle) {
	if a.addr(i) != 0 {
		a.handleAt(i).set(h)
	}
}
func (a *args) setFlag(i int, v bool)                 { set(a.addr(i), flag(v)) }
func (a *args) setText(i int, s string, room int) int { return setText(a.addr(i), s, room) }

func (a *args) setCount(i, v int) {
	if a.wide {
		a.setAint(i, v)
	} else {
		a.setInt(i, v)
	}
}

// setInts stores numbers in an array of int.
func (a *args) setInts(i int, v []int) {
	out := memory[int32](a.addr(i), len(v))
	for k := range v {
		out[k] = int32(v[k])
	}
}

func flag(v bool) int32 {
	if v {
		return 1
	}
	return 0
}

// comm returns the communicator of a handle, and makes it the owner of errors.
func (a *args) comm(i int) *comm {
	c := a.p.comm(a.handle(i))
	if c == nil {
		a.fail(errorf(errComm, "%#x is not a communicator", uint32(a.handle(i))))
		return nil
	}
	if a.owner == nil {
		a.owner = c
	}
	return c
}

// datatype returns the datatype of a handle.
func (a *args) datatype(i int) *datatype {
	t, err := a.p.datatype(a.handle(i))
	if err != nil {
		a.fail(err)
	}
	return t
}
