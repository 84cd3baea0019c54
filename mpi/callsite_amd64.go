package mpi

// framePCs stores the return addresses of the calling functions, the innermost first, and
// returns their number. It follows frame pointers, which Go maintains on this architecture;
// runtime.Callers decodes tables for each frame instead.
//
//go:noescape
func framePCs(pcs *[siteDepth]uintptr) int
