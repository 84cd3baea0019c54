//go:build linux

package shmem

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	futexWait = 0 // not FUTEX_PRIVATE: the word is shared between processes
	futexWake = 1
)

// Sleep sleeps while *w is v, at most for the timeout. It is a Syscall and not a RawSyscall,
// so that Go's scheduler runs other goroutines meanwhile.
func Sleep(w *atomic.Uint32, v uint32, timeout time.Duration) {
	ts := unix.NsecToTimespec(int64(timeout))
	syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWait, uintptr(v),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// SleepHoldingP is Sleep that keeps its P in Go's scheduler: for a goroutine that will be
// woken soon, beside one that computes. Handing off the P, and finding a thread to run it,
// costs the computing goroutine a hundred microseconds. There must be a timeout: only with
// one does the preemption signal of the garbage collector end the wait (futex(2) then
// fails with EINTR; without a timeout, the kernel restarts it).
func SleepHoldingP(w *atomic.Uint32, v uint32, timeout time.Duration) {
	ts := unix.NsecToTimespec(int64(timeout))
	syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWait, uintptr(v),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// Wake wakes one that sleeps on w.
func Wake(w *atomic.Uint32) {
	syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWake, 1, 0, 0, 0)
}
