//go:build !linux

package shm

import "runtime"

func onlineCores() int { return runtime.NumCPU() }
