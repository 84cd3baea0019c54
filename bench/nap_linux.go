package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps by nanosleep: a timer of the Go runtime below a millisecond may take a
// whole millisecond.
func nap(d time.Duration) {
	for left := unix.NsecToTimespec(d.Nanoseconds()); unix.Nanosleep(&left, &left) == unix.EINTR; {
		// interrupted by a signal of the runtime: sleep for the rest
	}
}
