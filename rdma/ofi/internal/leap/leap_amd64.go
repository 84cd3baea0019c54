//go:build linux && !race

package leap

// Possible reports whether Call exists in this build.
const Possible = true

// Call calls the C function at fn with three arguments, on the stack whose upper end is
// top, and returns its result. Only one call at a time may use a stack.
func Call(fn, a, b, c, top uintptr) uintptr
