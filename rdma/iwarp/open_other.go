//go:build !linux

package iwarp

import (
	"fmt"
	"runtime"

	"github.com/muster-mpi/muster/rdma"
)

// Open returns an error: the device needs epoll, and so Linux.
func Open(Config) (rdma.Device, error) {
	return nil, fmt.Errorf("iwarp: there is no device for %s yet: %w", runtime.GOOS, rdma.ErrUnsupported)
}
