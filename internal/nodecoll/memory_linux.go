package nodecoll

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func shareMemory(size int, noMemfd bool, nonce uint64) (*Memory, error) {
	var file *os.File
	var memfdErr error
	path := ""
	if !noMemfd {
		file, memfdErr = makeMemfd(size)
	}
	if file == nil {
		path = filepath.Join("/dev/shm", fmt.Sprintf("%swin-%d-%016x", filePrefix, os.Getpid(), nonce))
		var err error
		if file, err = makeFile(path, size); err != nil {
			return nil, errors.Join(err, memfdErr)
		}
	}
	m, err := mapMemory(file, size)
	hide := func() {
		file.Close()
		if path != "" {
			os.Remove(path)
		}
	}
	if err != nil {
		hide()
		return nil, err
	}
	m.hide = hide
	m.Address = fmt.Sprintf("%d %d %x %s", os.Getpid(), file.Fd(), nonce, path)
	return m, nil
}

func mapMemory(f *os.File, size int) (*Memory, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	// A mapping beyond the end of a file succeeds; its first access raises SIGBUS.
	if info.Size() < int64(size) {
		return nil, fmt.Errorf("shared memory has %d bytes, %d are needed; run all ranks from the same build", info.Size(), size)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d KB of shared memory: %w; raise the limit on address space (ulimit -v)", size>>10, err)
	}
	return &Memory{Bytes: mem, unmap: func() error { return unix.Munmap(mem) }}, nil
}

func findMemory(address string, size int) (m *Memory, nonce uint64, err error) {
	var pid, fd int
	var path string
	if _, err := fmt.Sscanf(address, "%d %d %x", &pid, &fd, &nonce); err != nil {
		return nil, 0, fmt.Errorf("%q is not the address of shared memory: %w", address, err)
	}
	fmt.Sscanf(address, "%d %d %x %s", &pid, &fd, &nonce, &path) // only a file has a path
	if path == "" {
		path = fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("open the shared memory of process %d: %w; "+
			"containers need a shared PID namespace, or MUSTER_NO_MEMFD=1 and a shared /dev/shm", pid, err)
	}
	defer f.Close()
	m, err = mapMemory(f, size)
	return m, nonce, err
}
