//go:build !amd64 || race

package crc32c

// No folding: see fold_amd64.go.

const (
	best       = plain
	updateFrom = plain + 1
	copyFrom   = plain + 1
)

func (width) fold(uint32, []byte) uint32             { panic("crc32c: no vector instructions") }
func (width) foldCopy([]byte, []byte, uint32) uint32 { panic("crc32c: no vector instructions") }
