//go:build linux && !muster_portable

package engine

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelAlarm is an alarm of the kernel: one write or one call sets it, and the thread
// sleeps on it together with the sockets of the devices.
type kernelAlarm struct {
	timer, event int
	fds          [3]unix.PollFd
	limit        unix.Timespec
}

func (a *kernelAlarm) open() bool {
	var err error
	if a.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
		return false
	}
	if a.event, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		_ = unix.Close(a.timer) // nothing was written
		return false
	}
	return true
}

func (a *kernelAlarm) set(after time.Duration) {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(after))}
	_ = unix.TimerfdSettime(a.timer, 0, &at, nil) // the arguments are valid
}

func (a *kernelAlarm) signal() {
	one := uint64(1)
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(a.event), uintptr(unsafe.Pointer(&one)), 8) // cannot fail or block: the counter is small
}

// sleep sleeps until the alarm is due or was signaled, file is readable, or limit has passed;
// negative: none of these.
func (a *kernelAlarm) sleep(file int, limit time.Duration) {
	a.fds = [3]unix.PollFd{{Fd: int32(a.timer), Events: unix.POLLIN}, {Fd: int32(a.event), Events: unix.POLLIN}, {Fd: int32(file), Events: unix.POLLIN}}
	var until *unix.Timespec
	if limit >= 0 {
		a.limit = unix.NsecToTimespec(int64(limit))
		until = &a.limit
	}
	if file < 0 || !a.hold(limit) {
		_, _ = unix.Ppoll(a.fds[:], until, nil) // a signal may end it early
	}
	var count [8]byte
	for _, fd := range a.fds[:2] {
		if fd.Revents != 0 {
			_, _ = unix.Read(int(fd.Fd), count[:]) // set may have reset it meanwhile
		}
	}
}

// held is how long the thread keeps its P in Go's scheduler while it sleeps: longer than the
// time between two arrivals of a transfer under way, and too short for the monitor of the
// runtime, which preempts whoever runs for 10 ms.
const held = 5 * time.Millisecond

// hold sleeps for up to held without giving up the thread's P: where all others are in use, the
// thread would wait for one until the monitor preempts a goroutine. A stop of the world
// interrupts the sleep by a signal. It reports whether the sleep has ended.
func (a *kernelAlarm) hold(limit time.Duration) bool {
	at := unix.NsecToTimespec(int64(held))
	if limit >= 0 && limit < held {
		at = a.limit
	}
	n, _, err := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&a.fds[0])), uintptr(len(a.fds)), uintptr(unsafe.Pointer(&at)), 0, 0, 0)
	return n > 0 || err != 0 || limit >= 0 && limit < held
}

func (a *kernelAlarm) close() {
	_ = unix.Close(a.timer) // nothing was written
	_ = unix.Close(a.event)
}

// napThread sleeps for some microseconds. Like yieldThread, it bypasses the Go
// scheduler.
func napThread(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// yieldThread lets another thread run on this core. The raw call bypasses the Go
// scheduler, so the thread returns within microseconds.
func yieldThread() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// nameThread gives this thread a name, which top -H and debuggers show.
func nameThread() {
	name := append([]byte("muster-progress"), 0) // at most 16 bytes
	_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0)
}

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
