package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const fillName = "muster-chaos-fill"

// fillShm fills the /dev/shm of a process with a file of at most limit bytes, and returns
// how to remove it. The open directory keeps the file reachable when the process has died.
func fillShm(pid int, limit int64) (undo func() error, size int64, err error) {
	root, err := os.OpenRoot(filepath.Join("/proc", strconv.Itoa(pid), "root", "dev/shm"))
	if err != nil {
		return nil, 0, err
	}
	undo = func() error {
		err := root.Remove(fillName)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return errors.Join(err, root.Close())
	}
	file, err := root.Create(fillName)
	if err != nil {
		return nil, 0, errors.Join(err, root.Close())
	}
	defer file.Close()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &fs); err != nil {
		return nil, 0, errors.Join(err, undo())
	}
	// The job may take some of it meanwhile.
	for size = min(limit, int64(fs.Bavail)*fs.Bsize); size > 0; size -= size/8 + 4096 {
		if err = unix.Fallocate(int(file.Fd()), 0, 0, size); err != unix.ENOSPC {
			break
		}
	}
	if err != nil && size > 0 {
		return nil, 0, errors.Join(fmt.Errorf("fill /dev/shm: %w", err), undo())
	}
	return undo, max(size, 0), nil
}
