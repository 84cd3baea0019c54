//go:build !unix

package rdmatest

import "time"

// processCPU is the CPU time the process has used, or -1 if it is not known.
func processCPU() time.Duration { return -1 }
