// Package mg is MG of the NAS Parallel Benchmarks: it solves a Poisson equation on a
// periodic cube by multigrid (Bailey 1994, kernel MG).
//
// A cycle goes from the finest grid to the coarsest and back. Each rank owns a box of every
// grid with a layer of ghost points around it, and after each step the ranks exchange the
// faces of their boxes: long messages on fine grids, short ones on coarse grids. Where a
// box would become too small to be worth a message, the ranks gather the whole grid, and
// all of them compute the coarser ones alike.
//
// The files follow the program: mg.go is the benchmark, cycle.go the multigrid cycle,
// box.go the grids and their exchange, stencil.go the operators, source.go the right side.
package mg
