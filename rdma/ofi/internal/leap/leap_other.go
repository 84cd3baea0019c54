//go:build !amd64 || !linux || race

package leap

// Possible reports whether Call exists in this build.
const Possible = false

// Call panics: it is not available in this build.
func Call(fn, a, b, c, top uintptr) uintptr { panic("leap: not in this build") }
