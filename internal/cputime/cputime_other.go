//go:build !unix

package cputime

import "time"

// Used returns the CPU time of this process; false if the system does not report it, as
// here.
func Used() (time.Duration, bool) { return 0, false }
