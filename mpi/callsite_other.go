//go:build !amd64

package mpi

import "runtime"

// framePCs stores the return addresses of the calling functions, the innermost first, and
// returns their number.
func framePCs(pcs *[siteDepth]uintptr) int { return runtime.Callers(2, pcs[:]) }
