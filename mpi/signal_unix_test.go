//go:build unix

package mpi_test

import (
	"os"
	"syscall"
)

func stopSelf() error { return syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

func killSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

func signalStop(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

func signalContinue(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }

func signalKill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
