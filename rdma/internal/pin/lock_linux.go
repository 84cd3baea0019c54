package pin

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// lock locks the pages of mem. The kernel rounds to pages.
func lock(mem []byte) error {
	err := unix.Mlock(mem)
	if err == nil {
		return nil
	}
	var limit unix.Rlimit
	if (errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EPERM)) && unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil && limit.Cur != unix.RLIM_INFINITY {
		return fmt.Errorf("lock %d bytes: this process may lock %d KB in all (RLIMIT_MEMLOCK); raise it with ulimit -l, or leave strict mode: %w, %w",
			len(mem), limit.Cur>>10, rdma.ErrNoResources, err)
	}
	return fmt.Errorf("lock %d bytes: %w", len(mem), err)
}

// unlock cannot fail for memory that was locked and is still mapped.
func unlock(mem []byte) { _ = unix.Munlock(mem) }
