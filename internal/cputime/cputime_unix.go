//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// Used is what this process has used so far, and whether the system tells.
func Used() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
