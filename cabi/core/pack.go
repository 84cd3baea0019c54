package core

// Packing (MPI-4.1 sections 5.2 and 5.3). A packed message is the bytes of its elements in
// order, so that it can be sent as MPI_PACKED and received as elements.

func packing() map[string]handler {
	return map[string]handler{
		"Pack":               (*Process).pack,
		"Unpack":             (*Process).unpack,
		"Pack_size":          (*Process).packSize,
		"Pack_external":      (*Process).packExternal,
		"Unpack_external":    (*Process).unpackExternal,
		"Pack_external_size": (*Process).packExternalSize,
	}
}

// window is the part of a packed buffer that a call uses, and where the position is stored.
type window struct {
	bytes []byte
	pos   int
}

// window returns n bytes of the packed buffer in argument i from the position, whose address
// is in argument pos. The size of the buffer is in argument size. aint is whether the
// position is an MPI_Aint in the function without _c.
func (a *args) window(i, size, pos int, n int64, aint bool) window {
	if a.results(pos); a.err != nil {
		return window{}
	}
	w := window{}
	if aint || a.wide {
		w.pos = int(*at[int64](a.addr(pos)))
	} else {
		w.pos = int(*at[int32](a.addr(pos)))
	}
	room := a.int(size)
	if w.pos < 0 || room < 0 || int64(room-w.pos) < n {
		a.fail(errorf(errArg, "the packed buffer has %d bytes; the call uses %d from position %d", room, n, w.pos))
		return window{}
	}
	if n > 0 {
		if a.results(i); a.err != nil {
			return window{}
		}
		w.bytes = memory[byte](a.addr(i)+uintptr(w.pos), int(n))
	}
	w.pos += int(n)
	return w
}

func (p *Process) pack(a *args) error {
	a.comm(6)
	n, t := a.count(1), a.datatype(2)
	if a.err != nil {
		return a.err
	}
	v, err := t.view(a.addr(0), n)
	if err != nil {
		return err
	}
	w := a.window(3, 4, 5, v.Len(), false)
	if a.err != nil {
		return a.err
	}
	v.Pack(w.bytes, 0)
	a.setCount(5, w.pos)
	return nil
}

func (p *Process) unpack(a *args) error {
	a.comm(6)
	n, t := a.count(4), a.datatype(5)
	if a.err != nil {
		return a.err
	}
	v, err := t.view(a.addr(3), n)
	if err != nil {
		return err
	}
	w := a.window(0, 1, 2, v.Len(), false)
	if a.err != nil {
		return a.err
	}
	v.Unpack(w.bytes, 0)
	a.setCount(2, w.pos)
	return nil
}

func (p *Process) packSize(a *args) error {
	n, t := a.count(0), a.datatype(1)
	a.comm(2)
	if a.err != nil {
		return a.err
	}
	a.setNumber(3, int64(n)*t.layout.Size())
	return nil
}
