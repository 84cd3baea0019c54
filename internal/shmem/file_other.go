//go:build !linux

package shmem

import (
	"errors"
	"os"
)

var errNeedsLinux = errors.New("memory that processes share needs Linux")

// CreateMemfd fails: only Linux has memfd.
func CreateMemfd(string, int) (*os.File, error) { return nil, errNeedsLinux }

// CreateFile fails like CreateMemfd.
func CreateFile(string, string, uint64, int) (*os.File, string, error) {
	return nil, "", errNeedsLinux
}

// Map fails like CreateMemfd.
func Map(fd, size int) ([]byte, error) { return nil, errNeedsLinux }

// Unmap has nothing to do.
func Unmap([]byte) error { return nil }
