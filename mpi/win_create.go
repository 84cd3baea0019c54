package mpi

// Creation of windows (MPI-4.1 section 12.2). All ranks take the same steps:
//
//	newWindow       duplicates the communicator and exchanges the sizes of the memory
//	 ├ meetInProcess  ranks of one process exchange slices of their memory
//	 ├ mapTogether    ranks of a host map one segment, if the window allocates memory
//	 └ openFar        if some memory is not mapped: register it, and exchange the keys

import (
	"errors"
	"reflect"
	"runtime"
	"slices"

	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/nodecoll"
	"github.com/muster-mpi/muster/internal/rma"
)

// CreateWin creates a window over existing memory. Its length may differ between ranks,
// and it may be nil. The memory must stay in use until [Win.Free].
//
// Between processes of a host, puts and gets are copies by the kernel, and accumulates and
// locks need the target's processor; the memory of [AllocateWin] avoids both. All ranks of
// c call it.
func CreateWin[T Elem](c *Comm, mem []T) (*Win[T], error) {
	return newWindow(c, overMemory, mem, len(mem))
}

// AllocateWin creates a window with memory for n elements, all zero. The ranks of a host
// map each other's memory, so that puts, gets and accumulates are loads and stores there.
// All ranks of c call it; n may differ.
func AllocateWin[T Elem](c *Comm, n int) (*Win[T], error) {
	return newWindow[T](c, allocated, nil, n)
}

// AllocateSharedWin is [AllocateWin] for the ranks of one host, each of which may access
// the memory of all others directly: see [Win.Query]. Each rank's part begins at a new
// cache line. Create c with [Comm.SplitType] and ByNode.
func AllocateSharedWin[T Elem](c *Comm, n int) (*Win[T], error) {
	return newWindow[T](c, shared, nil, n)
}

// CreateDynamicWin creates a window without memory; each rank adds and removes memory with
// [Win.Attach] and [Win.Detach] at any time. All accesses are requests, which the target's
// progress engine serves.
func CreateDynamicWin[T Elem](c *Comm) (*Win[T], error) {
	return newWindow[T](c, dynamic, nil, 0)
}

func newWindow[T Elem](c *Comm, how flavor, mem []T, n int) (*Win[T], error) {
	w := &Win[T]{}
	if err := w.open(c, how, mem, n); err != nil {
		return nil, err
	}
	return w, nil
}

// open makes the window of an empty Win.
func (w *Win[T]) open(c *Comm, how flavor, mem []T, n int) error {
	h := c.begin(how.String(), CallCreate, ProcNull, AnyTag, n*sizeOf[T]())
	return h.finish(w.create(c, how, mem, n))
}

func (w *Win[T]) create(c *Comm, how flavor, mem []T, n int) error {
	op := how.String()
	if err := c.intra(op); err != nil {
		return err
	}
	size := sizeOf[T]()
	var refused error
	if err := admit[T](&c.w.types); err != nil {
		refused = c.refuse(ErrType, op, "%w", err)
	} else if n < 0 || size > 0 && n > maxAlloc/size {
		refused = c.refuse(ErrSize, op, "memory for %d elements of %d bytes", n, size)
	} else if size == 0 || size > rma.MaxPiece {
		refused = c.refuse(ErrType, op, "elements of %d bytes; a window has elements of 1 to %d bytes", size, rma.MaxPiece)
	}
	id, err := c.agree("Dup")
	if err != nil {
		if id != 0 { // others may have a window, and Free waits for all ranks
			err = errors.Join(err, c.withContext(id).abandon())
		}
		return err
	}
	d := c.withContext(id)
	d.SetName(c.Name() + ".win")
	w.c, w.name, w.flavor, w.epochs = d, d.Name(), how, rma.NewEpochs(c.size)
	w.elements, w.alarm = elementsOf[T](), d.e.Alarm(d.ctx)
	w.hooked = c.w.watch.on
	if err := w.exchangeLengths(c, op, n, refused); err != nil {
		return errors.Join(err, d.abandon())
	}
	if err := w.reachAll(op, mem); err != nil {
		for _, release := range w.release {
			_ = release() // the first error is the useful one
		}
		if errors.Is(err, ErrRMAShared) { // on all ranks
			return errors.Join(err, d.Free())
		}
		return errors.Join(err, d.abandon())
	}
	return nil
}

// exchangeLengths finds the number of elements of all ranks. They are usually equal, which the
// minimum and the maximum tell; only otherwise does each rank keep those of all others. The
// third number is the first rank that cannot take part, because of refused. Errors name the
// communicator of the call.
func (w *window) exchangeLengths(of *Comm, op string, n int, refused error) error {
	c := w.c
	mine := []int64{int64(n), -int64(n), int64(c.size)}
	if refused != nil {
		mine = []int64{0, 0, int64(c.rank)}
	}
	var found [3]int64
	if err := allreduce(c, op, mine, found[:], Min); err != nil {
		return err
	}
	if r := int(found[2]); r < c.size { // a call that one rank cannot make fails on all
		if refused == nil {
			refused = of.refuse(ErrSize, op, "rank %d cannot take part: its own error says why", r)
		}
		return errors.Join(refused, c.Free())
	}
	if w.lengths.each = n; found[0] == -found[1] {
		return nil
	}
	all := make([]int64, c.size)
	if err := allgather(c, op, []int64{int64(n)}, all); err != nil {
		return err
	}
	w.lengths.list = make([]int, c.size)
	for r, length := range all {
		w.lengths.list[r] = int(length)
	}
	return nil
}

// reachAll maps as much memory as possible.
func (w *Win[T]) reachAll(op string, mem []T) error {
	c := w.c
	w.mem = mem
	reason := w.apartReason()
	if reason == "" && w.flavor != dynamic {
		var err error
		switch {
		case c.w.nodes != nil:
			err = w.meetInProcess(op)
		case w.flavor == overMemory && c.size == 1:
			w.direct, w.control = [][]T{mem}, controls(make([]byte, controlBytes), 1)
		case w.flavor != overMemory:
			err = w.mapTogether(op)
		}
		if err != nil {
			return err
		}
	}
	if w.flavor == shared && w.control == nil {
		if reason == "" {
			reason = "they could not map one piece of memory"
		}
		return w.refuse(ErrRMAShared, op, "the ranks of %s do not share memory: %s; make a communicator by SplitType(mpi.ByNode, 0)", w.name, reason)
	}
	if w.control == nil {
		return w.openFar(op)
	}
	return nil
}

// apartReason returns why no rank of this window can share memory with others, or "" if some can.
func (w *window) apartReason() string {
	switch {
	case w.c.w.cfg.NoSharedMemory:
		return "MUSTER_NO_SHARED_MEMORY is set"
	case w.c.w.windows.apart:
		return "a test keeps them apart"
	}
	return ""
}

// meetInProcess is for ranks that are goroutines of one process: all memory is accessible,
// whichever rank has allocated it.
func (w *Win[T]) meetInProcess(op string) error {
	c := w.c
	if w.flavor != overMemory {
		w.mem = make([]T, w.lengths.of(c.rank))
	}
	key := nodecoll.MeetingKey{Number: c.ctx, First: c.world(0)}
	m := c.w.nodes.Meet(key, c.rank, c.size, c.size*controlBytes, rawBytes(w.mem))
	err := c.barrier(op)
	c.w.nodes.Part(key)
	if err != nil {
		return err
	}
	w.direct = make([][]T, c.size)
	for r := range w.direct {
		w.direct[r] = elements[T](m.Memory[r])
	}
	w.control = controls(m.Common, c.size)
	return nil
}

// mapTogether maps one segment in all ranks of each host, which the first rank creates. If
// one of them cannot map it, none does.
func (w *Win[T]) mapTogether(op string) error {
	c := w.c
	size := sizeOf[T]()
	var here []int // ranks of this host
	total := 0
	offsets := map[int]int{}
	node := c.w.client.Node(c.world(c.rank))
	for r := range c.size {
		if c.w.client.Node(c.world(r)) == node {
			here = append(here, r)
			offsets[r] = total
			total += controlBytes
		}
	}
	for _, r := range here {
		if !w.contiguous || r == here[0] {
			total = (total + lineBytes - 1) &^ (lineBytes - 1)
		}
		offsets[r+c.size] = total
		total += w.lengths.of(r) * size
	}
	m, err := w.shareMemory(op, here, total)
	if m == nil {
		return err
	}
	var words []*control
	w.first, w.direct = here[0], make([][]T, here[len(here)-1]+1-here[0])
	for _, r := range here {
		at, n := offsets[r+c.size], w.lengths.of(r)
		w.direct[r-w.first] = elemsOf[T](m.Bytes[at:at+n*size:at+n*size], n)
		words = append(words, controls(m.Bytes[offsets[r]:offsets[r]+controlBytes], 1)...)
	}
	w.mem = w.part(c.rank)
	if len(here) == c.size {
		w.control = words
	}
	return nil
}

// shareMemory creates memory that the given ranks, those of this host, share; nil if one of
// them cannot. Only they exchange messages: an address means nothing on other hosts.
func (w *Win[T]) shareMemory(op string, here []int, total int) (*nodecoll.Region, error) {
	c := w.c
	m, err := nodecoll.FormRegion(nodecoll.Config{Rank: slices.Index(here, c.rank), Size: len(here),
		Exchange: &regionLink{c: c, op: op, ranks: here}, NoMemfd: c.w.cfg.Advanced.NoMemfd}, total)
	if errors.As(err, new(*nodecoll.Unavailable)) {
		return nil, nil
	}
	if err != nil {
		return nil, c.failure(err, op, ProcNull, noTag, 0)
	}
	w.release = append(w.release, m.Close)
	return m, nil
}

// gatherKeys is the number of ranks up to which all of them exchange the keys of their memory
// when the window is created. In larger windows a rank requests a key before its first put
// or get at a rank, which takes a round trip then.
const gatherKeys = 1024

// openFar makes the remaining memory accessible through devices and requests.
func (w *Win[T]) openFar(op string) error {
	c := w.c
	if w.mem == nil && w.flavor == allocated && w.lengths.of(c.rank) > 0 {
		m, err := mapMemory(w.lengths.of(c.rank) * sizeOf[T]())
		if err != nil {
			return w.refuse(ErrNoMem, op, "%w", err) // the others are notified when this rank leaves
		}
		w.release = append(w.release, func() error { return unmapMemory(m.whole) })
		w.mem = elemsOf[T](m.used, w.lengths.of(c.rank))
	}
	if c.w.nodes == nil && runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2) // a P to serve requests while the program computes
	}
	b := rawBytes(w.mem)
	target := rma.NewTarget(b, w.elements)
	target.Others = w.others
	far, mine, err := c.e.OpenWindow(c.pt, c.ranks, c.size, target, b)
	if err != nil {
		return c.failure(err, op, ProcNull, noTag, 0)
	}
	w.far = far
	w.release = append([]func() error{far.Close}, w.release...) // before the memory is released
	if c.size <= gatherKeys && !c.w.windows.keysOnUse {
		all := make([]engine.WindowMemory, c.size)
		if err := allgather(c, op, []engine.WindowMemory{mine}, all); err != nil {
			return err
		}
		for r, p := range all {
			far.SetMemory(r, p)
		}
	}
	if w.flavor != dynamic && w.direct == nil {
		w.first, w.direct = c.rank, [][]T{w.mem}
	}
	return nil
}

// elementsOf describes T for accumulates.
func elementsOf[T Elem]() rma.Elements {
	e := rma.Elements{Size: sizeOf[T]()}
	t := reflect.TypeFor[T]()
	kinds := map[reflect.Kind]dtype.Kind{
		reflect.Int8: dtype.Int8, reflect.Int16: dtype.Int16, reflect.Int32: dtype.Int32, reflect.Int64: dtype.Int64,
		reflect.Uint8: dtype.Uint8, reflect.Uint16: dtype.Uint16, reflect.Uint32: dtype.Uint32, reflect.Uint64: dtype.Uint64,
		reflect.Float32: dtype.Float32, reflect.Float64: dtype.Float64,
		reflect.Complex64: dtype.Complex64, reflect.Complex128: dtype.Complex128,
	}
	switch t.Kind() {
	case reflect.Int:
		kinds[reflect.Int] = dtype.Int32
		if e.Size == 8 {
			kinds[reflect.Int] = dtype.Int64
		}
	case reflect.Uint, reflect.Uintptr:
		kinds[t.Kind()] = dtype.Uint32
		if e.Size == 8 {
			kinds[t.Kind()] = dtype.Uint64
		}
	case reflect.Struct:
		switch t {
		case reflect.TypeFor[Loc[int64]](), reflect.TypeFor[Loc[int]]():
			e.Kind, e.Known = dtype.PairInt64Int64, true
		case reflect.TypeFor[Loc[float32]]():
			e.Kind, e.Known = dtype.PairFloat32Int64, true
		case reflect.TypeFor[Loc[float64]]():
			e.Kind, e.Known = dtype.PairFloat64Int64, true
		}
		return e
	}
	e.Kind, e.Known = kinds[t.Kind()]
	return e
}
