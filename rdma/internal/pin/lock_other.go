//go:build !linux

package pin

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

func lock(mem []byte) error {
	return fmt.Errorf("lock %d bytes: strict mode needs Linux: %w", len(mem), rdma.ErrUnsupported)
}

func unlock([]byte) {}
