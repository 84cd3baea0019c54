//go:build unix

package lab

import "syscall"

// kill kills a process, which may have ended by itself.
func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

// gone reports whether a process does not exist.
func gone(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }
