//go:build unix

package main

import (
	"os"
	"syscall"
)

// forwardedSignals returns the signals that muster run passes on to the ranks.
func forwardedSignals() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGCONT}
}
