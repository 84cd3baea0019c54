//go:build !amd64

package shm

// Only a hint, see prefetch_amd64.go; here the hardware is left to find out.

func prefetchWrite(*byte, int) {}

func prefetchRead(*byte, int) {}

func demote(*byte, int) {}
