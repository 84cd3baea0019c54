//go:build !linux

package bench

import "fmt"

// openBare fails: the references use system calls of Linux.
func openBare(_ *VerbsSession, t *verbsTrial, _, _ int) (wire, error) {
	return nil, fmt.Errorf("%w: bare %s sockets are measured on Linux only", errNotOpened, t.Device)
}

// socketBuffers is called on Linux only, where /proc exists.
func socketBuffers(int) int { return 0 }
