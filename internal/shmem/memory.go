package shmem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
)

// FilePrefix begins the names of memfds and files.
const FilePrefix = "muster-"

// headBytes is the space before Memory.Bytes, for a number by which Find recognizes it.
const headBytes = LineBytes

// Memory is memory shared by processes of a host: one creates it, the others find it by its
// address. When all have mapped it, its creator hides it, so that nothing is left when the
// last process ends, however it ends.
type Memory struct {
	Bytes   []byte // initially zero; they begin on a cache line
	Address string // for Find
	whole   []byte
	hide    func()
}

// Share creates memory of size bytes. noMemfd makes it a file in dir, for processes that
// share a file system but cannot open each other's descriptors. Call Hide when the others
// have found it.
func Share(size int, dir string, noMemfd bool) (*Memory, error) {
	var (
		file          *os.File
		path          string
		err, memfdErr error
	)
	nonce, size := rand.Uint64(), headBytes+size
	if !noMemfd {
		file, memfdErr = CreateMemfd("mem", size)
	}
	if file == nil {
		if file, path, err = CreateFile(dir, "mem-", nonce, size); err != nil {
			return nil, errors.Join(err, memfdErr)
		}
	}
	hide := func() {
		file.Close()
		if path != "" {
			os.Remove(path)
		}
	}
	mem, err := Map(int(file.Fd()), size)
	if err != nil {
		hide()
		return nil, err
	}
	binary.NativeEndian.PutUint64(mem, nonce)
	return &Memory{mem[headBytes:], fmt.Sprintf("%d %d %x %s", os.Getpid(), file.Fd(), nonce, path), mem, hide}, nil
}

// Find maps memory of at least size bytes that another process shares.
func Find(address string, size int) (*Memory, error) {
	var pid, fd int
	var nonce uint64
	var path string
	if _, err := fmt.Sscanf(address, "%d %d %x", &pid, &fd, &nonce); err != nil {
		return nil, fmt.Errorf("%q is not the address of shared memory: %w", address, err)
	}
	fmt.Sscanf(address, "%d %d %x %s", &pid, &fd, &nonce, &path) // only a file has a path
	f, err := OpenOf(pid, fd, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mem, err := Map(int(f.Fd()), headBytes+size)
	if err != nil {
		return nil, err
	}
	m := &Memory{Bytes: mem[headBytes:], whole: mem}
	if binary.NativeEndian.Uint64(mem) != nonce {
		return nil, errors.Join(fmt.Errorf("the memory at %q is not the shared memory; run all ranks on one host", address), m.Close())
	}
	return m, nil
}

// OpenOf opens memory of a process: by its path, if it is a file, else by its descriptor.
func OpenOf(pid, fd int, path string) (*os.File, error) {
	var pathErr error
	if path != "" {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			return f, nil
		}
		pathErr = err
	}
	f, err := os.OpenFile(ProcPath(pid, fd), os.O_RDWR, 0)
	if err == nil {
		return f, nil
	}
	hint := "the ranks must run as one user and see each other's processes"
	if errors.Is(err, os.ErrNotExist) {
		hint = "the process has ended, or it runs in another PID namespace"
	}
	return nil, fmt.Errorf("open the shared memory of process %d: %w; %s; containers need a shared PID namespace, or MUSTER_NO_MEMFD=1 and a shared /dev/shm",
		pid, errors.Join(pathErr, err), hint)
}

// ProcPath returns the path of a descriptor of a process.
func ProcPath(pid, fd int) string { return fmt.Sprintf("/proc/%d/fd/%d", pid, fd) }

// Hide prevents further processes from finding the memory. Existing mappings stay.
func (m *Memory) Hide() {
	if m.hide != nil {
		m.hide()
		m.hide = nil
	}
}

// Close releases the memory. Bytes must not be used afterwards.
func (m *Memory) Close() error {
	m.Hide()
	if m.whole == nil {
		return nil
	}
	mem := m.whole
	m.whole, m.Bytes = nil, nil
	return Unmap(mem)
}
