package core

// Reading and writing of files (MPI-4.1 section 14.4). The functions are combinations of a direction, a
// pointer and a form.

import (
	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/mpi"
)

// fileTransfer is the direction and pointer of a function; buffer is its parameter with the address.
type fileTransfer struct {
	cbinding.FileAccess
	buffer int
}

// fileTransfers returns the functions that read and write.
func fileTransfers() map[string]handler {
	table := map[string]handler{}
	for suffix, t := range map[string]fileTransfer{
		"":         {cbinding.FileAccess{By: cbinding.ByPointer}, 1},
		"_at":      {cbinding.FileAccess{By: cbinding.ByOffset}, 2},
		"_all":     {cbinding.FileAccess{By: cbinding.ByPointer, All: true}, 1},
		"_at_all":  {cbinding.FileAccess{By: cbinding.ByOffset, All: true}, 2},
		"_shared":  {cbinding.FileAccess{By: cbinding.ByShared}, 1},
		"_ordered": {cbinding.FileAccess{By: cbinding.ByOrder, All: true}, 1},
	} {
		for verb, write := range map[string]bool{"read": false, "write": true} {
			t.Write = write
			table["File_"+verb+suffix] = t.access
			if t.By != cbinding.ByOrder {
				table["File_i"+verb+suffix] = t.start
			}
			if t.All {
				table["File_"+verb+suffix+"_begin"] = t.begin
				table["File_"+verb+suffix+"_end"] = t.end
			}
		}
	}
	return table
}

// fileBuffer is the buffer of a call: what the file gets or gives, and what happens then to what was read.
type fileBuffer struct {
	mem    dtype.View
	offset int64
	land   func(n int)
}

// decode decodes and checks the arguments of a call.
func (t fileTransfer) decode(a *args) (f *file, b fileBuffer, err error) {
	f = a.file(0)
	if t.buffer == 2 {
		b.offset = int64(a.int(1))
	}
	addr, count, typ := a.addr(t.buffer), a.count(t.buffer+1), a.committedType(t.buffer+2)
	if a.err != nil {
		return f, b, a.err
	}
	if b.offset < 0 {
		return f, b, errorf(errArg, "the offset is %d", b.offset)
	}
	if t.By == cbinding.ByOffset || t.By == cbinding.ByPointer {
		if err := f.refuseInOrder(); err != nil {
			return f, b, err
		}
	}
	switch {
	case t.Write && f.amode&amodeRead != 0:
		return f, b, errorf(errReadOnly, "the file is open with MPI_MODE_RDONLY")
	case !t.Write && f.amode&amodeWrite != 0:
		return f, b, errorf(errAccess, "the file is open with MPI_MODE_WRONLY")
	}
	if b.mem, err = typ.view(addr, count); err != nil {
		return f, b, err
	}
	if unit := f.view.etype.layout.Size(); b.mem.Len()%unit != 0 {
		return f, b, errorf(errIO, "the data of %d bytes is no multiple of the elementary type of %d bytes", b.mem.Len(), unit)
	}
	if f.view.external && count > 0 {
		err = b.convert(typ, int64(count), t.Write)
	}
	return f, b, err
}

// convert replaces the buffer by one in external32.
func (b *fileBuffer) convert(typ *datatype, count int64, write bool) error {
	if typ.elements.external != typ.layout.Size() {
		return errorf(errDatarep, "external32 has other sizes for elements of the buffer: use types of fixed size")
	}
	memory, n := b.mem, b.mem.Len()
	native, external := make([]byte, n), make([]byte, n)
	if write {
		memory.Pack(native, 0)
		typ.elements.convert(count, native, external, true)
	} else {
		b.land = func(got int) {
			whole := int64(got) / typ.layout.Size()
			typ.elements.convert(whole, native, external, false)
			memory.Unpack(native[:whole*typ.layout.Size()], 0)
		}
	}
	flat, err := dtype.Basic(n, 1)
	if err != nil {
		return errorf(errCount, "%v", err)
	}
	b.mem, err = flat.View(external, 0, 1)
	return err
}

// callOf returns the access with the name of the function.
func (t fileTransfer) callOf(a *args) cbinding.FileAccess {
	t.Name = a.name
	return t.FileAccess
}

// access is a blocking function.
func (t fileTransfer) access(_ *Process, a *args) error {
	f, b, err := t.decode(a)
	if err != nil {
		return err
	}
	if t.All && f.split != nil {
		return errorf(errOther, "a split collective call has not ended")
	}
	n, err := f.data.Access(t.callOf(a), b.offset, b.mem)
	if b.land != nil {
		b.land(int(n))
	}
	a.setStatus(t.buffer+3, fileStatus(int(n)))
	return err
}

// fileStatus is the status of a call that has transferred n bytes.
func fileStatus(n int) status {
	st := emptyStatus
	st.length = int64(n)
	return st
}

// launch starts a nonblocking access.
func (t fileTransfer) launch(a *args) (*file, *request, error) {
	f, b, err := t.decode(a)
	if err != nil {
		return f, nil, err
	}
	r := &request{owner: f, Request: f.data.Start(t.callOf(a), b.offset, b.mem).(mpi.Request)}
	if b.land != nil {
		r.done = func() error { b.land(int(r.status.length)); return nil }
	}
	return f, r, nil
}

// start is a nonblocking function.
func (t fileTransfer) start(p *Process, a *args) error {
	if a.results(t.buffer + 3); a.err != nil {
		return a.err
	}
	_, r, err := t.launch(a)
	if err != nil {
		return err
	}
	p.addRequest(a, t.buffer+3, r)
	return nil
}

// begin and end are a split collective call (MPI-4.1 section 14.4.5).
func (t fileTransfer) begin(_ *Process, a *args) error {
	if a.file(0).split != nil {
		return errorf(errOther, "a split collective call has not ended")
	}
	f, r, err := t.launch(a)
	if err == nil {
		f.split = r
	}
	return err
}

func (t fileTransfer) end(p *Process, a *args) error {
	f := a.file(0)
	r := f.split
	if r == nil {
		return errorf(errOther, "no split collective call has begun")
	}
	f.split = nil
	r.await(p)
	a.setStatus(2, r.status)
	return r.err
}
