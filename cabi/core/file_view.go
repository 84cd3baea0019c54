package core

// Views of files, and their data representations (MPI-4.1 sections 14.3 and 14.5).

import (
	"errors"
	"sync"

	"github.com/muster-mpi/muster/mpi"
)

// fileView is a view as the program has set it.
type fileView struct {
	disp            int
	etype, filetype *datatype
	datarep         string
	external        bool // external32
}

const (
	displacementCurrent = -54278278 // MPI_DISPLACEMENT_CURRENT
	maxDatarep          = 128       // MPI_MAX_DATAREP_STRING
)

func (p *Process) fileSetView(a *args) error {
	f, disp := a.file(0), a.int(1)
	v := fileView{disp: disp, etype: a.committedType(2), filetype: a.committedType(3)}
	hints := a.hints(5)
	if a.results(4); a.err != nil {
		return a.err
	}
	if disp == displacementCurrent {
		n, err := f.data.SharedPointer()
		if err != nil {
			return err
		}
		v.disp = int(f.data.Offset(n))
	} else if disp < 0 {
		return errorf(errArg, "the displacement is %d", disp)
	}
	if f.split != nil {
		return errorf(errOther, "a split collective call has not ended")
	}
	if n := v.etype.layout.Size(); n == 0 || v.filetype.layout.Size()%n != 0 {
		return errorf(errArg, "the file type has %d bytes, the elementary type %d: want a multiple", v.filetype.layout.Size(), n)
	}
	v.datarep = a.text(4)
	if err := p.checkDatarep(&v); err != nil {
		return err
	}
	if err := f.addHints(hints); err != nil {
		return err
	}
	if err := f.data.OpenView(int64(v.disp), v.etype.layout.Size(), v.filetype.layout); err != nil {
		if errors.Is(err, mpi.ErrType) { // displacements that MPI does not allow: the class is that of ROMIO
			err = errorf(errIO, "%v", err)
		}
		return err
	}
	f.view = v
	return nil
}

// checkDatarep fails unless the representation of a view is supported. In external32, numbers whose size
// differs there would change the offsets of a view.
func (p *Process) checkDatarep(v *fileView) error {
	switch v.datarep {
	case "native", "internal":
		return nil
	case "external32":
		if v.etype.elements.external != v.etype.layout.Size() {
			return errorf(errDatarep, "external32 has other sizes for elements of the view: use types of fixed size, such as MPI_INT64_T for MPI_LONG")
		}
		v.external = true
		return nil
	}
	if plain, ok := p.dataReps.get(v.datarep); ok && plain {
		return nil
	}
	return errorf(errDatarep, "the data representation %q is not supported", v.datarep)
}

// dataReps are the data representations of the program: whether they are that of memory.
type dataReps struct {
	mu    sync.Mutex
	plain map[string]bool
}

func (d *dataReps) get(name string) (plain, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	plain, ok = d.plain[name]
	return plain, ok
}

// registerDatarep is MPI_Register_datarep. Views with conversion functions are refused when they are
// set, as ROMIO does.
func (p *Process) registerDatarep(a *args) error {
	a.owner = p.noFile
	if a.results(0); a.err != nil {
		return a.err
	}
	name := a.text(0)
	if name == "" || len(name) >= maxDatarep {
		return errorf(errArg, "the name of the data representation has %d characters, want 1 to %d", len(name), maxDatarep-1)
	}
	d := &p.dataReps
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.plain[name]; ok || name == "native" || name == "internal" || name == "external32" {
		return errorf(errDupDatarep, "the data representation %q is already defined", name)
	}
	if d.plain == nil {
		d.plain = map[string]bool{}
	}
	d.plain[name] = a.addr(1) == 0 && a.addr(2) == 0
	return nil
}

func (p *Process) fileGetView(a *args) error {
	v := &a.file(0).view
	a.setAint(1, v.disp)
	a.setHandle(2, p.reference(v.etype))
	a.setHandle(3, p.reference(v.filetype))
	a.setText(4, v.datarep, maxDatarep)
	return nil
}

func (p *Process) fileByteOffset(a *args) error {
	f, off := a.file(0), a.int(1)
	if err := f.refuseInOrder(); err != nil {
		return err
	}
	if off < 0 {
		return errorf(errArg, "the offset is %d", off)
	}
	a.setAint(2, int(f.data.Offset(int64(off))))
	return nil
}

// fileTypeExtent is MPI_File_get_type_extent: all representations have the extents of memory.
func (p *Process) fileTypeExtent(a *args) error {
	t := a.datatype(1)
	if a.err != nil {
		return a.err
	}
	a.setAint(2, int(t.layout.Extent()))
	return nil
}
