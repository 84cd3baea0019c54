package core

// Windows (MPI-4.1 chapter 12): the objects and their creation. win_move.go has the accesses,
// win_accumulate.go those that combine, win_sync.go the synchronization.

import (
	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/mpi"
)

// win is a window of the program. Its memory is bytes; units says how many of them a
// displacement counts.
type win struct {
	*mpi.Win[byte]
	bytes   cbinding.Win // the same window, for calls of C
	handle  handle
	handler *errhandler
	name    string
	attrs   attrs
	hints   *info
	flavor  winFlavor
	base    uintptr
	units   []int // by rank
	joined  bool  // shared memory without gaps between ranks
	// What MPI_Win_get_attr returns the addresses of.
	size   []int64
	values []int32
}

func (w *win) errhandler() *errhandler    { return w.handler }
func (w *win) handlerField() **errhandler { return &w.handler }
func (w *win) self() (handle, uintptr)    { return w.handle, 0 }
func (w *win) nameField() *string         { return &w.name }

func (w *win) attributes() *attrs { return &w.attrs }
func (w *win) attrHandle() handle { return w.handle }

func (a *args) winOwner(i int) handled {
	if w := a.win(i); w != nil {
		return w
	}
	return nil
}

func (a *args) winWithAttrs(i int) attributed {
	if w := a.win(i); w != nil {
		return w
	}
	return nil
}

// winFlavor is MPI_WIN_FLAVOR_.
type winFlavor int32

const (
	flavorCreate   winFlavor = 1
	flavorAllocate winFlavor = 2
	flavorDynamic  winFlavor = 3
	flavorShared   winFlavor = 4
)

func windows() map[string]handler {
	return map[string]handler{
		"Win_create":          (*Process).winCreate,
		"Win_allocate":        (*Process).winAllocate,
		"Win_allocate_shared": (*Process).winAllocateShared,
		"Win_create_dynamic":  (*Process).winCreateDynamic,
		"Win_attach":          (*Process).winAttach,
		"Win_detach":          (*Process).winDetach,
		"Win_shared_query":    (*Process).winSharedQuery,
		"Win_free":            (*Process).winFree,
		"Win_set_name":        setName((*args).win),
		"Win_get_name":        getName((*args).win),
		"Win_get_group":       groupOf((*args).win, func(w *win) *mpi.Group { return w.Group() }),
		"Win_set_info":        (*Process).winSetInfo,
		"Win_get_info":        (*Process).winGetInfo,
	}
}

// win returns the window of a handle, and makes it the owner of errors.
func (a *args) win(i int) *win {
	w := a.p.wins.get(a.handle(i))
	if w == nil {
		a.fail(errorf(errWin, "%#x is not a window", uint32(a.handle(i))))
		return nil
	}
	a.owner = w
	return w
}

func (p *Process) winCreate(a *args) error {
	c, size, unit, hints := a.comm(4), a.winSize(1), a.unit(2), a.hints(3)
	if a.err == nil && a.addr(0) == 0 && size > 0 {
		return errorf(errArg, "the memory of %d bytes is NULL", size)
	}
	if a.err == nil && a.addr(5) == 0 {
		return errorf(errArg, "the address for the window is NULL")
	}
	if a.err != nil {
		return a.err
	}
	cfg := cbinding.WinConfig{Existing: true, Memory: memory[byte](a.addr(0), size)}
	w, err := p.newWin(c, flavorCreate, unit, hints, cfg)
	if err != nil {
		return err
	}
	w.base = a.addr(0)
	a.setHandle(5, w.handle)
	return nil
}

// winAllocate is MPI_Win_allocate, whose memory may be anywhere.
func (p *Process) winAllocate(a *args) error {
	return p.allocate(a, flavorAllocate, cbinding.WinConfig{})
}

// winAllocateShared is MPI_Win_allocate_shared. The memory of the ranks is contiguous unless
// the info key alloc_shared_noncontig says otherwise.
func (p *Process) winAllocateShared(a *args) error {
	return p.allocate(a, flavorShared, cbinding.WinConfig{Shared: true, Contiguous: true})
}

func (p *Process) allocate(a *args, flavor winFlavor, cfg cbinding.WinConfig) error {
	c, size, unit, hints := a.comm(3), a.winSize(0), a.unit(1), a.hints(2)
	if a.err == nil && (a.addr(4) == 0 || a.addr(5) == 0) {
		return errorf(errArg, "the address for the memory or the window is NULL")
	}
	if a.err != nil {
		return a.err
	}
	cfg.Bytes = size
	if v, _ := hints.get("alloc_shared_noncontig"); v == "true" {
		cfg.Contiguous = false
	}
	w, err := p.newWin(c, flavor, unit, hints, cfg)
	if err != nil {
		return err
	}
	w.base = addressOf(w.Memory())
	if flavor == flavorShared {
		w.base = w.beginOf(c.Rank())
	}
	set(a.addr(4), w.base)
	a.setHandle(5, w.handle)
	return nil
}

// beginOf returns where the memory of a rank of a shared window would begin if it has none: at
// the end of that of the rank before, or nowhere if there are gaps between ranks.
func (w *win) beginOf(rank int) uintptr {
	for r := rank; r >= 0 && (r == rank || w.joined); r-- {
		if mem, err := w.Query(r); err == nil && len(mem) > 0 {
			if r == rank {
				return addressOf(mem)
			}
			return addressOf(mem) + uintptr(len(mem))
		}
	}
	return 0
}

func (p *Process) winCreateDynamic(a *args) error {
	c, hints := a.comm(1), a.hints(0)
	w, err := p.newWin(c, flavorDynamic, 1, hints, cbinding.WinConfig{Dynamic: true})
	if err != nil {
		return err
	}
	a.setHandle(2, w.handle)
	return nil
}

// winSize returns the size of the memory of a window.
func (a *args) winSize(i int) int {
	n := a.int(i)
	if n < 0 {
		a.fail(errorf(errSize, "the size is %d", n))
		return 0
	}
	return n
}

// unit returns a displacement unit.
func (a *args) unit(i int) int {
	n := a.int(i)
	if n <= 0 {
		a.fail(errorf(errArg, "the displacement unit is %d", n))
		return 1
	}
	return n
}

// newWin makes a window, and exchanges the displacement units.
func (p *Process) newWin(c *comm, flavor winFlavor, unit int, hints *info, cfg cbinding.WinConfig) (*win, error) {
	cfg.Elements = p.elements()
	b, err := cbinding.Get().NewWin(c.Comm, cfg)
	if err != nil {
		return nil, err
	}
	w := &win{Win: b.Window().(*mpi.Win[byte]), bytes: b, flavor: flavor, joined: cfg.Contiguous, hints: hints.clone(), units: make([]int, c.Size())}
	if err := mpi.Allgather(c.Comm, []int{unit}, w.units); err != nil {
		return nil, err
	}
	const unified = 2 // MPI_WIN_UNIFIED
	of := p.abi.numberFor
	w.size = []int64{int64(len(w.Memory()))}
	w.values = []int32{int32(unit), of(numberFlavor, int32(flavor)), of(numberModel, unified)}
	w.handler = p.standard.unset
	w.handle = p.wins.add(w)
	return w, nil
}

// Predefined attributes of windows.
const (
	attrWinBase   handle = 0x66000001
	attrWinSize   handle = 0x66000003
	attrWinUnit   handle = 0x66000005
	attrWinFlavor handle = 0x66000007
	attrWinModel  handle = 0x66000009
)

// windowAttr returns a predefined attribute (MPI-4.1 section 12.2.6): for C the base itself
// or the address of a number, and the value.
func (w *win) windowAttr(key handle) (address, value uint64, ok bool) {
	switch key = inC(key); key {
	case attrWinBase:
		return uint64(w.base), uint64(w.base), true
	case attrWinSize:
		return uint64(addressOf(w.size)), uint64(w.size[0]), true
	case attrWinUnit, attrWinFlavor, attrWinModel:
		i := (key - attrWinUnit) / 2
		return uint64(addressOf(w.values[i:])), uint64(w.values[i]), true
	}
	return 0, 0, false
}

func (p *Process) winAttach(a *args) error {
	w, size := a.win(0), a.winSize(2)
	if size > 0 {
		a.results(1)
	}
	if a.err != nil {
		return a.err
	}
	return w.bytes.AttachAt(a.addr(1), memory[byte](a.addr(1), size))
}

func (p *Process) winDetach(a *args) error {
	w := a.win(0)
	return w.bytes.DetachAt(a.addr(1))
}

// winSharedQuery is MPI_Win_shared_query. With MPI_PROC_NULL it is about the lowest rank that
// has memory.
func (p *Process) winSharedQuery(a *args) error {
	w, rank := a.win(0), a.int(1)
	if w.flavor != flavorShared {
		return errorf(errRMAFlavor, "the memory of the window is not shared: use MPI_Win_allocate_shared")
	}
	if rank == procNull {
		for rank = 0; rank < len(w.units)-1 && w.Len(rank) == 0; rank++ {
		}
		if w.Len(rank) == 0 {
			a.setAint(2, 0)
			a.setCount(3, 0)
			set(a.addr(4), uintptr(0))
			return nil
		}
	}
	mem, err := w.Query(rank)
	if err != nil {
		return err
	}
	a.setAint(2, len(mem))
	a.setCount(3, w.units[rank])
	set(a.addr(4), w.beginOf(rank))
	return nil
}

func (p *Process) winFree(a *args) error {
	at := a.handleAt(0)
	w := p.wins.get(at.get())
	if w == nil {
		return errorf(errWin, "%#x is not a window", uint32(at.get()))
	}
	a.owner = w
	if err := p.deleteAttrs(w); err != nil {
		return err
	}
	if err := w.Free(); err != nil {
		return err
	}
	p.wins.remove(at.get())
	p.release(w.handler)
	at.set(winNull)
	return nil
}

func (p *Process) winSetInfo(a *args) error {
	w, hints := a.win(0), a.info(1)
	for _, h := range hints.pairs() {
		w.hints.set(h.key, h.value)
	}
	return nil
}

// winGetInfo is MPI_Win_get_info: the hints that the window has, with the defaults of those
// that MPI defines (MPI-4.1 section 12.2.1).
func (p *Process) winGetInfo(a *args) error {
	w := a.win(0)
	out := &info{}
	for _, h := range winHints {
		if v, ok := w.hints.get(h.key); ok {
			h.value = v
		}
		if h.key != "alloc_shared_noncontig" || w.flavor == flavorShared {
			out.set(h.key, h.value)
		}
	}
	a.setHandle(1, p.infos.add(out))
	return nil
}

// winHints are the hints of windows and their defaults.
var winHints = []infoPair{
	{"no_locks", "false"},
	{"accumulate_ordering", "rar,raw,war,waw"},
	{"accumulate_ops", "same_op_no_op"},
	{"mpi_accumulate_granularity", "0"},
	{"same_size", "false"},
	{"same_disp_unit", "false"},
	{"alloc_shared_noncontig", "false"},
}
