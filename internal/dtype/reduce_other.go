//go:build !amd64 || race

package dtype

// No vector instructions: see reduce_amd64.go.

const haveVectors = false

func reduceVectors(Op, Kind, *byte, *byte, int) bool { return false }
