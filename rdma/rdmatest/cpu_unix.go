//go:build unix

package rdmatest

import (
	"syscall"
	"time"
)

// processCPU is the CPU time the process has used, or -1 if it is not known.
func processCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return -1
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
