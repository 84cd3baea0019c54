//go:build !linux

package shm

import "runtime"

// OnlineCores returns the number of cores of the machine.
func OnlineCores() int { return runtime.NumCPU() }
