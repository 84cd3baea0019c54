//go:build !linux

package bench

import "fmt"

// openBare: the references are written in Linux's system calls.
func openBare(_ *VerbsSession, t *verbsTrial, _, _ int) (wire, error) {
	return nil, fmt.Errorf("%w: bare %s sockets are measured on Linux only", errNotOpened, t.Device)
}

// socketBuffers is asked on Linux only, where /proc is.
func socketBuffers(int) int { return 0 }
