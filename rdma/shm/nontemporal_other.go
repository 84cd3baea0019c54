//go:build !amd64

package shm

// copyNonTemporal is a plain copy here, see nontemporal_amd64.go.
func copyNonTemporal(to, from []byte) { copy(to, from) }
