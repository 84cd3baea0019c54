package shmem

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CreateMemfd creates a memfd of size bytes, which no mount limits and which uses memory only
// where it is touched.
func CreateMemfd(name string, size int) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(FilePrefix+name, flags|unix.MFD_NOEXEC_SEAL)
	if err != nil { // before Linux 6.3
		fd, err = unix.MemfdCreate(FilePrefix+name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), FilePrefix+name)
	if err := f.Truncate(int64(size)); err != nil {
		f.Close()
		return nil, fmt.Errorf("size a memfd of %d KB: %w", size>>10, err)
	}
	// No process can make it shorter than the others' mappings.
	unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	return f, nil
}

// CreateFile creates a file of size bytes in a directory of a memory file system. Its pages
// are reserved at once: a page that the mount cannot provide on access would raise SIGBUS.
// The file is locked as long as its creator has it open.
func CreateFile(dir, name string, nonce uint64, size int) (f *os.File, path string, err error) {
	path = filepath.Join(dir, fmt.Sprintf("%s%s%d-%016x", FilePrefix, name, os.Getpid(), nonce))
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("create shared memory: %w", err)
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = unix.Fallocate(int(f.Fd()), 0, 0, int64(size))
	}
	if err != nil {
		f.Close()
		os.Remove(path)
		return nil, "", fmt.Errorf("reserve %d KB in %s: %w; enlarge it (docker: --shm-size)", size>>10, dir, err)
	}
	return f, path, nil
}

// FileLocked reports whether the creator of a file still exists, in whichever namespace.
func FileLocked(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return !os.IsNotExist(err)
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

// orphanAge protects files that are just being created from RemoveOrphans.
const orphanAge = time.Minute

// RemoveOrphans removes files whose creators were killed: their locks are free.
func RemoveOrphans(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // creating a file will report why
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), FilePrefix) || !info.Mode().IsRegular() || time.Since(info.ModTime()) < orphanAge {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			os.Remove(path)
		}
		f.Close()
	}
}

// Map maps the first size bytes of a file.
func Map(fd, size int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("descriptor %d of shared memory: %w", fd, err)
	}
	// A mapping beyond the end of a file succeeds; its first access raises SIGBUS.
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size < int64(size) {
		return nil, fmt.Errorf("descriptor %d (mode %#o) has %d bytes of shared memory, %d are needed; run all ranks from the same build",
			fd, st.Mode, st.Size, size)
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d KB of shared memory: %w; raise the limit on address space (ulimit -v) or on mappings (vm.max_map_count)", size>>10, err)
	}
	return mem, nil
}

// Unmap reverts Map.
func Unmap(mem []byte) error { return unix.Munmap(mem) }
