// Package flow has what the flow solvers of the NAS Parallel Benchmarks, LU, BT and SP,
// share: the compressible Navier–Stokes equations in three dimensions, their differences on a
// grid of the unit cube, and the exact solution that the forcing makes the steady state
// (Bailey 1994, simulated applications).
//
// A Grid divides the points among a square number of ranks by multi-partition, and a Sweep
// solves systems of equations along all lines of a dimension.
package flow
