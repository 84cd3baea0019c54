package prompt

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// slice is the time slice that the goroutine asks for. It needs little time and
// soon: a thread with a short slice is preferred when it wakes, even where it shares a
// core with one that computes (EEVDF, Linux 6.12). Kernels that do not know of it take no
// notice.
const slice = 100_000 // ns

// AsThread does something on a thread of its own that is woken promptly. Only while the
// program is away: beside one that spins, such a thread costs more than it brings.
func AsThread(do func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if attr, err := unix.SchedGetAttr(0, 0); err == nil && attr.Policy == unix.SCHED_NORMAL { // else somebody has decided
		usual := attr.Runtime
		attr.Runtime = slice
		_ = unix.SchedSetAttr(0, attr, 0) // without it the goroutine is only later
		defer func() {
			attr.Runtime = usual
			_ = unix.SchedSetAttr(0, attr, 0)
		}()
	}
	do()
}

// Pause sleeps in the kernel. A timer of the runtime would wake another thread first,
// which would have to wake this one: two waits for a core that computes. Where all
// goroutines share one processor, they must have it meanwhile.
func Pause(d time.Duration) {
	if runtime.GOMAXPROCS(0) == 1 {
		time.Sleep(d)
		return
	}
	limit := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&limit, nil) // a signal may end it early
}
