package rdmatest

import (
	"testing"

	"golang.org/x/sys/unix"
)

// NeedLocking skips a test of a device that locks memory if this process may lock less
// memory than the suite needs.
func NeedLocking(t testing.TB) {
	t.Helper()
	const most = 64 << 20
	mem, err := unix.Mmap(-1, 0, most, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Skipf("map %d bytes to test locking: %v", most, err)
	}
	defer func() { _ = unix.Munmap(mem) }() // also unlocks it
	if err := unix.Mlock(mem); err != nil {
		t.Skipf("lock %d bytes: %v; raise the limit with ulimit -l", most, err)
	}
}
