//go:build !muster_portable

package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// yieldThread lets another thread run on this core. The raw call bypasses the Go
// scheduler, so the thread returns within microseconds.
func yieldThread() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// shortSlice requests a short time slice for this thread. Linux preempts the running
// thread for a waking one with a shorter slice; otherwise the waking thread waits
// until the other's slice ends, some milliseconds. Kernels before 6.12 ignore the
// request.
func shortSlice() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return // the user has set another policy
	}
	attr.Runtime = uint64(100 * time.Microsecond) // the minimum
	_ = unix.SchedSetAttr(0, attr, 0)
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0) // naps are shorter than the default of 50 µs
}
