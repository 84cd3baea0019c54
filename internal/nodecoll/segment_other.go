//go:build !linux

package nodecoll

import "errors"

var errNoSegment = errors.New("memory that processes share needs Linux")

func createShared(*Config, uint64) (creation, error) { return creation{}, errNoSegment }

func attachShared(*Config, string) (mapping, uint64, error) { return mapping{}, 0, errNoSegment }

func shareMemory(int, bool, uint64) (*Memory, error) { return nil, errNoSegment }

func findMemory(string, int) (*Memory, uint64, error) { return nil, 0, errNoSegment }
