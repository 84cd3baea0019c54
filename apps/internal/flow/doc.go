// Package flow has the compressible Navier–Stokes equations in three dimensions, as the flow
// solvers of the NAS Parallel Benchmarks solve them: their differences on a grid of the unit
// cube, and the exact solution that the forcing makes the steady state (Bailey 1994, simulated
// applications).
package flow
