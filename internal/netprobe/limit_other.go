//go:build !linux

package netprobe

// limits returns nothing: only Linux has token bucket filters.
func limits() map[int]int { return nil }
