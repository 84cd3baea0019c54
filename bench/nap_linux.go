package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps in the kernel, as nanosleep does in C: a timer of the runtime that ends
// in less than a millisecond may take a whole one.
func nap(d time.Duration) {
	for left := unix.NsecToTimespec(d.Nanoseconds()); unix.Nanosleep(&left, &left) == unix.EINTR; {
		// a signal of the runtime; the rest is slept
	}
}
