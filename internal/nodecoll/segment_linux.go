package nodecoll

// The segment of processes: a memfd, which the other ranks open through /proc of the
// process that created it, or a file in a memory file system. When all ranks have mapped
// it, the descriptor is closed and the file removed, so nothing is left when the last
// process ends, however it ends.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// filePrefix is that of the shared-memory device, which removes files of killed processes.
const filePrefix = "muster-"

func createShared(cfg *Config, nonce uint64) (creation, error) {
	c := creation{nonce: nonce}
	size := segmentBytes(cfg.Size)
	var file *os.File
	var memfdErr error
	path := ""
	if !cfg.NoMemfd {
		file, memfdErr = makeMemfd(size)
	}
	if file == nil {
		path = filepath.Join(cfg.Dir, fmt.Sprintf("%scoll-%d-%016x", filePrefix, os.Getpid(), nonce))
		var err error
		if file, err = makeFile(path, size); err != nil {
			return c, errors.Join(err, memfdErr)
		}
	}
	c.hide = func() {
		file.Close()
		if path != "" {
			os.Remove(path)
		}
	}
	var err error
	if c.mapping, err = mapShared(file, cfg.Size); err != nil {
		c.hide()
		c.hide = nil
		return c, err
	}
	c.address = fmt.Sprintf("%d %d %x %s", os.Getpid(), file.Fd(), nonce, path)
	return c, nil
}

func makeMemfd(size int) (*os.File, error) {
	const name = filePrefix + "coll"
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if err != nil { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err := f.Truncate(int64(size)); err != nil {
		f.Close()
		return nil, fmt.Errorf("size a memfd: %w", err)
	}
	// No process can make it shorter than the others' mappings.
	unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	return f, nil
}

// makeFile reserves the pages at once: a page that the mount cannot provide on first access
// would raise SIGBUS.
func makeFile(path string, size int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a segment for collectives: %w", err)
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size)); err != nil {
		f.Close()
		os.Remove(path)
		return nil, fmt.Errorf("reserve %d KB for collectives in %s: %w; enlarge it (docker: --shm-size)", size>>10, filepath.Dir(path), err)
	}
	return f, nil
}

func mapShared(f *os.File, ranks int) (mapping, error) {
	info, err := f.Stat()
	if err != nil {
		return mapping{}, fmt.Errorf("the segment for collectives: %w", err)
	}
	// A mapping beyond the end of a file succeeds; its first access raises SIGBUS.
	size := segmentBytes(ranks)
	if info.Size() < int64(size) {
		return mapping{}, fmt.Errorf("the segment for collectives has %d bytes, %d ranks need %d; run all ranks from the same build", info.Size(), ranks, size)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return mapping{}, fmt.Errorf("map %d KB for collectives: %w; raise the limit on address space (ulimit -v)", size>>10, err)
	}
	return mapping{layOut(mem, ranks), func() error { return unix.Munmap(mem) }}, nil
}

func attachShared(cfg *Config, address string) (m mapping, nonce uint64, err error) {
	var pid, fd int
	var path string
	if _, err := fmt.Sscanf(address, "%d %d %x", &pid, &fd, &nonce); err != nil {
		return m, 0, fmt.Errorf("%q is not the address of a segment for collectives: %w", address, err)
	}
	fmt.Sscanf(address, "%d %d %x %s", &pid, &fd, &nonce, &path) // only a file has a path
	if path == "" {
		path = fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return m, 0, fmt.Errorf("open the segment for collectives of process %d: %w; "+
			"containers need a shared PID namespace, or MUSTER_NO_MEMFD=1 and a shared %s", pid, err, cfg.Dir)
	}
	defer f.Close()
	m, err = mapShared(f, cfg.Size)
	return m, nonce, err
}
