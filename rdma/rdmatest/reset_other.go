//go:build !linux

package rdmatest

import "net/netip"

// ResetLoopback needs Linux.
func ResetLoopback() int { return 0 }

// ResetTCP needs Linux.
func ResetTCP(func(local, remote netip.AddrPort) bool) int { return 0 }
