//go:build !linux

package rdmatest

import "testing"

// NeedLocking skips a test of a device that locks memory, which needs Linux.
func NeedLocking(t testing.TB) {
	t.Helper()
	t.Skip("locking memory requires Linux")
}
