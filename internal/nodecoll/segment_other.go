//go:build !linux

package nodecoll

import "errors"

var errNoSegment = errors.New("collectives in shared memory between processes need Linux")

func createShared(*Config, uint64) (creation, error) { return creation{}, errNoSegment }

func attachShared(*Config, string) (mapping, uint64, error) { return mapping{}, 0, errNoSegment }

func membarrierRegister() bool { return false }

func membarrier() {}
