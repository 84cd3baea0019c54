package lab

import (
	"fmt"
	"io"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// SpinIdle keeps the cores of this process busy in the scheduling class for idle time until r
// ends.
func SpinIdle(r io.Reader) error {
	var cores unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cores); err != nil {
		return fmt.Errorf("lab: read the affinity of the process: %w", err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores.Count() + 1)) // one for the reader
	var ended atomic.Bool
	started := make(chan error, cores.Count())
	for core := range len(cores) * 64 {
		if cores.IsSet(core) {
			go spinOn(core, &ended, started)
		}
	}
	for range cores.Count() {
		if err := <-started; err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, r)
	ended.Store(true)
	return err
}

// spinOn is SpinIdle for one core. The thread ends with the goroutine.
func spinOn(core int, ended *atomic.Bool, started chan<- error) {
	runtime.LockOSThread()
	var one unix.CPUSet
	one.Set(core)
	err := unix.SchedSetaffinity(0, &one)
	if err == nil {
		err = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
	}
	if err != nil {
		started <- fmt.Errorf("lab: put a thread into the scheduling class for idle time: %w", err)
		return
	}
	started <- nil
	for !ended.Load() { // see KeepAwake for why it yields
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}
