//go:build !linux

package core

// The C interface is for Linux; elsewhere the package is compiled only.

import "errors"

func thread() int { return 0 }

func mapMemory(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func mapMemoryAt(uintptr, int) error { return errors.ErrUnsupported }

func unmapMemory([]byte) error { return errors.ErrUnsupported }

func readSocket(int, []byte) error { return errors.ErrUnsupported }

func writeSocket(int, []byte) error { return errors.ErrUnsupported }
