//go:build unix

package groups

import (
	"os/exec"
	"syscall"
)

// endWithGroup makes the end of a command's context end its process group.
func endWithGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// kill kills a process, which may have exited.
func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
