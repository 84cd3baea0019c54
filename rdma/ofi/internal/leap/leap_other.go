//go:build !amd64 || !linux || race

package leap

// Possible tells whether Call exists in this build.
const Possible = false

// Call is not there.
func Call(fn, a, b, c, top uintptr) uintptr { panic("leap: not in this build") }
