//go:build !linux

package shm

import "runtime"

// OnlineCores counts the cores of the machine.
func OnlineCores() int { return runtime.NumCPU() }
