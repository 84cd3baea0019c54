//go:build unix

package chaos

import "syscall"

// The process may have ended by itself, so errors do not matter.

func kill(pid int)   { _ = syscall.Kill(pid, syscall.SIGKILL) }
func stop(pid int)   { _ = syscall.Kill(pid, syscall.SIGSTOP) }
func resume(pid int) { _ = syscall.Kill(pid, syscall.SIGCONT) }
func quit(pid int)   { _ = syscall.Kill(pid, syscall.SIGQUIT) }
