package engine

import (
	"time"

	"golang.org/x/sys/unix"
)

// yieldThread lets another thread run on this core. The raw call keeps the
// scheduler of the runtime out of it: the thread comes back within microseconds.
func yieldThread() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// shortSlice asks the kernel for short turns of this thread on a core. Who asks for
// less than the thread that runs there is let in when it wakes up; otherwise it waits
// until the other's turn is over, some milliseconds. Kernels before 6.12 take no
// notice.
func shortSlice() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return // the user has arranged it otherwise
	}
	attr.Runtime = uint64(100 * time.Microsecond) // the least there is
	_ = unix.SchedSetAttr(0, attr, 0)
}
