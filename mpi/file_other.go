//go:build !linux

package mpi

import (
	"errors"
	"os"
)

// blockSize returns the unit in which the file system writes.
func blockSize(*os.File) int64 { return 4096 }

// openDirect finds no file without the cache of the system.
func openDirect(*os.File, int) *os.File { return nil }

// preallocate extends the file to n bytes.
func preallocate(f *os.File, n int64) error { return extend(f, n) }

// lockRange locks a range of the file. Only Linux has locks of an open file.
func lockRange(*os.File, int64, int64, bool) (unlock func(), err error) {
	return func() {}, errors.ErrUnsupported
}
