//go:build linux

package bench

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nap sleeps by nanosleep: a timer of the Go runtime below a millisecond may take a whole
// millisecond. The runtime does not learn of the call, as it would not learn of a
// computation: after a blocking call its monitor wakes up every 20 µs, and that would count
// as processor time of the messages.
func nap(d time.Duration) {
	for left := unix.NsecToTimespec(d.Nanoseconds()); ; {
		if _, _, errno := unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&left)), uintptr(unsafe.Pointer(&left)), 0); errno != unix.EINTR {
			return
		}
		// interrupted by a signal of the runtime: sleep for the rest
	}
}
