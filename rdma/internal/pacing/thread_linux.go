package pacing

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

// longPause is a pause that may end a little late.
const longPause = time.Millisecond

// Thread is the thread of a goroutine, which has it to itself while the program is away:
// beside one that spins, such a thread costs more than it brings.
type Thread struct {
	attr  unix.SchedAttr
	asked bool
	usual bool // nobody else has decided how it is scheduled
	limit unix.Timespec
}

// Enter gives the calling goroutine a thread of its own that is woken promptly, until
// Leave.
func (t *Thread) Enter() {
	runtime.LockOSThread()
	if !t.asked {
		t.asked = true
		if attr, err := unix.SchedGetAttr(0, 0); err == nil {
			t.attr, t.usual = *attr, attr.Policy == unix.SCHED_NORMAL
		}
	}
	t.set(slice)
}

// Leave ends it.
func (t *Thread) Leave() {
	t.set(0) // as the system has it
	runtime.UnlockOSThread()
}

func (t *Thread) set(slice uint64) {
	if t.usual {
		t.attr.Runtime = slice
		_ = unix.SchedSetAttr(0, &t.attr, 0) // without it the goroutine is only later
	}
}

// Pause sleeps in the kernel if it is short. A timer of the runtime would wake another
// thread first, which would have to wake this one: two waits for a core that computes. A long
// sleep in the kernel would be seen by the runtime's monitor, which takes the processor
// from who sleeps and then looks every 20 µs for some milliseconds whether there is more to
// take: with 16 ranks on two cores that was an eighth of all time. Where all goroutines
// share one processor, they must have it meanwhile.
func (t *Thread) Pause(d time.Duration) {
	if runtime.GOMAXPROCS(0) == 1 || d >= longPause {
		time.Sleep(d)
		return
	}
	t.limit = unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&t.limit, nil) // a signal may end it early
}
