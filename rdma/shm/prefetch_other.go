//go:build !amd64

package shm

// Only hints, see prefetch_amd64.go; here they are left to the hardware.

func prefetchWrite(*byte, int) {}

func prefetchRead(*byte, int) {}

func demote(*byte, int) {}
