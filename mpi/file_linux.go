package mpi

import (
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// blockSize returns the unit in which the file system writes.
func blockSize(f *os.File) int64 {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Blksize <= 0 {
		return 4096
	}
	return int64(st.Blksize)
}

// openDirect opens the same file once more, with access mode flag and without the cache of the system. It
// returns nil where the file system has no such access.
func openDirect(f *os.File, flag int) *os.File {
	direct, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), flag|unix.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return direct
}

// preallocate allocates the first n bytes.
func preallocate(f *os.File, n int64) error {
	if n == 0 {
		return nil
	}
	err := unix.Fallocate(int(f.Fd()), 0, 0, n)
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	return extend(f, n)
}

// lockRange locks a range of the file for this rank, until the returned function is called. The lock
// is one of the open file, as ranks may be goroutines of one process (fcntl(2), F_OFD_SETLKW).
func lockRange(f *os.File, lo, hi int64, exclusive bool) (unlock func(), err error) {
	l := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: lo, Len: hi - lo}
	if exclusive {
		l.Type = unix.F_WRLCK
	}
	for {
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLKW, &l)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return func() {
		l.Type = unix.F_UNLCK
		_ = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l) // closing the file unlocks it too
	}, err
}
