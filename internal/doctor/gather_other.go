//go:build !linux

package doctor

import "golang.org/x/sys/unix"

// gatherSystem collects little: most facts are specific to Linux.
func gatherSystem(f *Facts) {
	f.Identity = f.Hostname
	f.Limits = Limits{Files: -1, FilesMax: -1, Processes: -1, Locked: -1}
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err == nil && r.Cur < 1<<62 {
		f.Limits.Files, f.Limits.FilesMax = int64(r.Cur), int64(min(r.Max, 1<<62))
	}
}
