//go:build !linux

package groups

import "errors"

var errNoBinding = errors.New("threads cannot be bound on this system")

func twoCPUs() ([]int, error)  { return nil, errNoBinding }
func bindThread(cpu int) error { return errNoBinding }
