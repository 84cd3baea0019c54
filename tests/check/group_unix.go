//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endGroup lets a command be killed with what it has started.
func endGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
