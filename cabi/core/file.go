package core

// Files (MPI-4.1 chapter 14): the objects, and calls that concern the whole file. file_view.go has the
// views, file_data.go the calls that read and write.

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/mpi"
)

// file is a file of the program. Its handle is a pointer in all ABIs, and has the number of the handle as
// value, so that Fortran can have it as an integer.
type file struct {
	*mpi.File
	data    cbinding.File
	word    uintptr
	handler *errhandler
	amode   int
	hints   *info
	view    fileView
	split   *request // of a split collective call that has begun
}

func (f *file) errhandler() *errhandler    { return f.handler }
func (f *file) handlerField() **errhandler { return &f.handler }
func (f *file) self() (handle, uintptr)    { return 0, f.word }

// Access modes: MPI_MODE_ of the MPICH ABI.
const (
	amodeCreate    = 1
	amodeRead      = 2
	amodeWrite     = 4
	amodeReadWrite = 8
	amodeDelete    = 16
	amodeUnique    = 32
	amodeExcl      = 64
	amodeAppend    = 128
	amodeInOrder   = 256 // MPI_MODE_SEQUENTIAL
	amodeAll       = 512 - 1
)

func files() map[string]handler {
	table := map[string]handler{
		"File_open":                (*Process).fileOpen,
		"File_close":               (*Process).fileClose,
		"File_delete":              (*Process).fileDelete,
		"File_get_size":            (*Process).fileSize,
		"File_set_size":            (*Process).fileSetSize,
		"File_preallocate":         (*Process).filePreallocate,
		"File_sync":                func(p *Process, a *args) error { return a.file(0).Sync() },
		"File_set_atomicity":       func(p *Process, a *args) error { return a.file(0).SetAtomic(a.int(1) != 0) },
		"File_get_atomicity":       queryFlag((*args).file, func(f *file) bool { return f.Atomic() }),
		"File_get_amode":           query((*args).file, func(f *file) int { return f.amode }),
		"File_get_group":           groupOf((*args).file, func(f *file) *mpi.Group { return f.Group() }),
		"File_set_info":            (*Process).fileSetInfo,
		"File_get_info":            copyInfo((*args).file, (*file).hintsInUse),
		"File_set_view":            (*Process).fileSetView,
		"File_get_view":            (*Process).fileGetView,
		"File_seek":                (*Process).fileSeek,
		"File_seek_shared":         (*Process).fileSeekShared,
		"File_get_position":        (*Process).filePosition,
		"File_get_position_shared": (*Process).fileSharedPosition,
		"File_get_byte_offset":     (*Process).fileByteOffset,
		"File_get_type_extent":     (*Process).fileTypeExtent,
		"Register_datarep":         (*Process).registerDatarep,
	}
	for name, h := range fileTransfers() {
		table[name] = h
	}
	for name, h := range table {
		if strings.HasPrefix(name, "File_") && name != "File_open" && name != "File_close" && name != "File_delete" {
			table[name] = onFile(h)
		}
	}
	return table
}

// onFile calls the handler if the first parameter is a file.
func onFile(h handler) handler {
	return func(p *Process, a *args) error {
		if a.file(0) == nil {
			return a.err
		}
		return h(p, a)
	}
}

// file returns the file of a handle, and makes it the owner of errors.
func (a *args) file(i int) *file {
	f := a.p.files.get(a.p.abi.handleOf(a.v[i]))
	if f == nil {
		a.owner = a.p.noFile
		a.fail(errorf(errFile, "%#x is not a file", a.addr(i)))
		return nil
	}
	a.owner = f
	return f
}

func (a *args) fileOwner(i int) handled {
	if a.addr(i) == 0 {
		return a.p.noFile
	}
	if f := a.file(i); f != nil {
		return f
	}
	return nil
}

// fileOpen is MPI_File_open. Until the file is open, its errors are those of MPI_FILE_NULL.
func (p *Process) fileOpen(a *args) error {
	c := a.intra(0)
	a.owner = p.noFile
	if a.results(1, 4); a.err != nil {
		return a.err
	}
	amode, hints := a.int(2), a.hints(3)
	flag, err := openFlags(amode)
	if err != nil {
		return err
	}
	if a.err != nil {
		return a.err
	}
	data, err := cbinding.Get().OpenFile(c.Comm, withoutFileSystem(a.text(1)), flag, fileHintsOf(hints))
	if err != nil {
		return err
	}
	f := &file{File: data.File().(*mpi.File), data: data, amode: amode, hints: hints.clone()}
	f.view = fileView{etype: p.base.types[byteType&0xff], filetype: p.base.types[byteType&0xff], datarep: "native"}
	p.handlersMu.Lock()
	f.handler = p.noFile.handler
	f.handler.refs++
	p.handlersMu.Unlock()
	f.word = uintptr(p.abi.word(p.files.add(f)))
	set(a.addr(4), f.word)
	return nil
}

// openFlags returns the flags of os.OpenFile for an access mode (MPI-4.1 section 14.2.1).
func openFlags(amode int) (int, error) {
	flag := 0
	switch amode & (amodeRead | amodeWrite | amodeReadWrite) {
	case amodeRead:
		flag = os.O_RDONLY
	case amodeWrite:
		flag = os.O_WRONLY
	case amodeReadWrite:
		flag = os.O_RDWR
	default:
		return 0, errorf(errAmode, "the access mode %#x does not have one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR", amode)
	}
	switch {
	case amode&^amodeAll != 0:
		return 0, errorf(errAmode, "the access mode %#x has unknown bits", amode)
	case flag == os.O_RDONLY && amode&(amodeCreate|amodeExcl) != 0:
		return 0, errorf(errAmode, "MPI_MODE_RDONLY excludes MPI_MODE_CREATE and MPI_MODE_EXCL")
	case flag == os.O_RDWR && amode&amodeInOrder != 0:
		return 0, errorf(errAmode, "MPI_MODE_RDWR excludes MPI_MODE_SEQUENTIAL")
	}
	for bit, more := range map[int]int{amodeCreate: os.O_CREATE, amodeExcl: os.O_EXCL, amodeAppend: os.O_APPEND} {
		if amode&bit != 0 {
			flag |= more
		}
	}
	return flag, nil
}

// withoutFileSystem removes the prefix by which programs for ROMIO select a file system.
func withoutFileSystem(name string) string {
	if kind, rest, ok := strings.Cut(name, ":"); ok {
		switch kind {
		case "ufs", "nfs", "xfs", "pvfs2", "lustre", "gpfs", "panfs", "testfs":
			return rest
		}
	}
	return name
}

func (p *Process) fileClose(a *args) error {
	if a.results(0); a.err != nil {
		return a.err
	}
	word := uint64(*at[uintptr](a.addr(0)))
	h := p.abi.handleOf(word)
	f := p.files.get(h)
	if f == nil {
		a.owner = p.noFile
		return errorf(errFile, "%#x is not a file", word)
	}
	a.owner = f
	if f.split != nil {
		return errorf(errOther, "a split collective call has not ended")
	}
	if f.amode&amodeDelete != 0 && f.Group().Rank() == 0 {
		_ = os.Remove(f.Name()) // the others still have it open
	}
	err := f.Close()
	p.files.remove(h)
	p.release(f.handler)
	set(a.addr(0), uintptr(p.abi.noFile))
	return err
}

func (p *Process) fileDelete(a *args) error {
	a.owner = p.noFile
	if a.results(0); a.err != nil {
		return a.err
	}
	name := withoutFileSystem(a.text(0))
	err := os.Remove(name)
	if err == nil {
		return nil
	}
	return errorf(classOfFile(err), "file %s: %v", name, err)
}

func (p *Process) fileSize(a *args) error {
	n, err := a.file(0).Size()
	if err == nil {
		a.setAint(1, int(n))
	}
	return err
}

func (p *Process) fileSetSize(a *args) error     { return a.file(0).SetSize(int64(a.int(1))) }
func (p *Process) filePreallocate(a *args) error { return a.file(0).Preallocate(int64(a.int(1))) }

// fileErrors are the classes of errors of the system that package mpi has not.
var fileErrors = map[syscall.Errno]class{
	syscall.EROFS: errReadOnly, syscall.EDQUOT: errQuota, syscall.ENOENT: errNoSuchFile, syscall.EACCES: errAccess, syscall.EPERM: errAccess,
	syscall.EBUSY: errFileInUse, syscall.EISDIR: errBadFile, syscall.ENOTDIR: errBadFile, syscall.ENAMETOOLONG: errBadFile,
}

// classOfFile returns the class of an error of the system.
func classOfFile(err error) class {
	var errno syscall.Errno
	if errors.As(err, &errno) && fileErrors[errno] != 0 {
		return fileErrors[errno]
	}
	return errIO
}

// hint is a setting of files by its name in ROMIO.
type hint struct {
	key string
	get func(*mpi.FileHints) string
	set func(*mpi.FileHints, string)
}

// fileHints are the hints that have a meaning here (MPI-4.1 section 14.2.8, and ROMIO's).
var fileHints = []hint{
	numberHint("cb_buffer_size", 4<<20, func(h *mpi.FileHints) *int { return &h.BufferSize }),
	numberHint("cb_nodes", 0, func(h *mpi.FileHints) *int { return &h.Aggregators }),
	numberHint("striping_unit", 0, func(h *mpi.FileHints) *int { return &h.Alignment }),
	wishHint("romio_cb_read", func(h *mpi.FileHints) *string { return &h.CollectiveRead }),
	wishHint("romio_cb_write", func(h *mpi.FileHints) *string { return &h.CollectiveWrite }),
	boolHint("direct_read", func(h *mpi.FileHints) *bool { return &h.DirectRead }),
	boolHint("direct_write", func(h *mpi.FileHints) *bool { return &h.DirectWrite }),
}

func numberHint(key string, normal int, field func(*mpi.FileHints) *int) hint {
	return hint{key, func(h *mpi.FileHints) string {
		if n := *field(h); n > 0 {
			return strconv.Itoa(n)
		}
		if normal == 0 {
			return ""
		}
		return strconv.Itoa(normal)
	}, func(h *mpi.FileHints, text string) {
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n > 0 {
			*field(h) = n
		}
	}}
}

func wishHint(key string, field func(*mpi.FileHints) *string) hint {
	return hint{key, func(h *mpi.FileHints) string {
		return map[string]string{"": "automatic", "always": "enable", "never": "disable"}[*field(h)]
	}, func(h *mpi.FileHints, text string) {
		*field(h) = map[string]string{"enable": "always", "disable": "never"}[strings.ToLower(strings.TrimSpace(text))]
	}}
}

func boolHint(key string, field func(*mpi.FileHints) *bool) hint {
	return hint{key, func(h *mpi.FileHints) string {
		return strconv.FormatBool(*field(h))
	}, func(h *mpi.FileHints, text string) {
		*field(h) = strings.EqualFold(strings.TrimSpace(text), "true")
	}}
}

// fileHintsOf returns the hints of an info object. Others are ignored.
func fileHintsOf(f *info) (out mpi.FileHints) {
	for _, h := range fileHints {
		if text, ok := f.get(h.key); ok {
			h.set(&out, text)
		}
	}
	return out
}

// addHints adds hints to those of the file.
func (f *file) addHints(more *info) error {
	if more == nil || len(more.pairs()) == 0 {
		return nil
	}
	for _, h := range more.pairs() {
		f.hints.set(h.key, h.value)
	}
	return f.SetHints(fileHintsOf(f.hints))
}

// fileSetInfo is MPI_File_set_info.
func (p *Process) fileSetInfo(a *args) error {
	f, hints := a.file(0), a.info(1)
	if a.err != nil {
		return a.err
	}
	return f.addHints(hints)
}

// hintsInUse returns the hints of a file with their defaults.
func (f *file) hintsInUse() *info {
	out, now := &info{}, f.Hints()
	for _, h := range fileHints {
		if text := h.get(&now); text != "" {
			out.set(h.key, text)
		}
	}
	return out
}

// seekFrom returns the argument of Seek for MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END.
func (a *args) seekFrom(i int) int {
	switch a.int(i) {
	case 600:
		return io.SeekStart
	case 602:
		return io.SeekCurrent
	case 604:
		return io.SeekEnd
	}
	a.fail(errorf(errArg, "whence is %d", a.int(i)))
	return 0
}

func (p *Process) fileSeek(a *args) error {
	f, whence := a.file(0), a.seekFrom(2)
	if err := f.refuseInOrder(); a.err != nil || err != nil {
		return err
	}
	_, err := f.data.Seek(int64(a.int(1)), whence)
	return err
}

func (p *Process) fileSeekShared(a *args) error {
	f, whence := a.file(0), a.seekFrom(2)
	if a.err != nil {
		return a.err
	}
	return f.data.SeekShared(int64(a.int(1)), whence)
}

func (p *Process) filePosition(a *args) error {
	f := a.file(0)
	if err := f.refuseInOrder(); err != nil {
		return err
	}
	n, err := f.data.Seek(0, io.SeekCurrent)
	a.setAint(1, int(n))
	return err
}

func (p *Process) fileSharedPosition(a *args) error {
	n, err := a.file(0).data.SharedPointer()
	a.setAint(1, int(n))
	return err
}

// refuseInOrder refuses what a file with MPI_MODE_SEQUENTIAL does not allow.
func (f *file) refuseInOrder() error {
	if f.amode&amodeInOrder != 0 {
		return errorf(errUnsupported, "the file is open with MPI_MODE_SEQUENTIAL: only calls with the shared pointer are allowed")
	}
	return nil
}
