//go:build !amd64 || race

package longcopy

var fastStrings bool

func moveString(_, _ *byte, _ int) { panic("longcopy: no string instructions") }
