//go:build linux && !muster_portable

package engine

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// napThread sleeps for some microseconds. Like yieldThread, it bypasses the Go
// scheduler.
func napThread(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}
