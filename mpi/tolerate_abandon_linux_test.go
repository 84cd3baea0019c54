//go:build !muster_portable

package mpi_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/muster-mpi/muster/mpi"
)

// TestFreeWindowThatOthersLack checks that a window can be freed that another rank could not
// create. Rank 1 finds no memory. The others have a window by then, if they request keys on
// use; otherwise they exchange them, and their calls end.
func TestFreeWindowThatOthersLack(t *testing.T) {
	const tooMuch = 1 << 46 // bytes
	if m, err := syscall.Mmap(-1, 0, tooMuch, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON); err == nil {
		_ = syscall.Munmap(m)
		t.Skipf("this system maps %d bytes", tooMuch)
	}
	for _, onUse := range []bool{true, false} {
		for _, revoke := range []bool{false, true} {
			t.Run(fmt.Sprintf("keys on use: %v, revoke: %v", onUse, revoke), func(t *testing.T) {
				tolerantJob(t, 4, nil, func(c *mpi.Comm) error {
					mpi.KeepWindowsApart(c, true)
					mpi.RequestKeysOnUse(c, onUse)
					n := 4
					if c.Rank() == 1 {
						n = tooMuch / 8
					}
					w, err := mpi.AllocateWin[int64](c, n)
					if c.Rank() == 1 && err == nil {
						return fmt.Errorf("rank 1 has allocated %d bytes", tooMuch)
					}
					if err != nil { // another rank may have been earlier, and have revoked it
						if !errors.Is(err, mpi.ErrRevoked) && !(c.Rank() == 1 && errors.Is(err, mpi.ErrNoMem)) {
							return fmt.Errorf("AllocateWin returned %w", err)
						}
						return shrunken(c, 4)
					}
					if revoke {
						if err := w.Revoke(); err != nil {
							return err
						}
					}
					if err := w.Free(); err != nil {
						return fmt.Errorf("Free: %w", err)
					}
					return shrunken(c, 4)
				})
			})
		}
	}
}
