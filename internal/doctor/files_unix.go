//go:build unix && !linux

package doctor

import "golang.org/x/sys/unix"

// openFiles returns the limits of open files, -1 if they are unknown.
func openFiles() (soft, hard int64) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil || r.Cur < 0 || r.Cur >= 1<<62 {
		return -1, -1
	}
	return int64(r.Cur), int64(min(r.Max, 1<<62))
}
