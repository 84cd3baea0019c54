//go:build unix

package mpi_test

import (
	"os"
	"syscall"
)

func stopSelf() error { return syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

func killSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
