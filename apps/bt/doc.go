// Package bt is BT of the NAS Parallel Benchmarks: it solves the compressible Navier–Stokes
// equations in three dimensions by alternating directions (Bailey 1994, application BT).
//
// A time step solves block-tridiagonal systems along all lines of x, then of y and of z. The
// grid is divided by multi-partition among a square number of ranks. A rank starts to receive
// the front of an elimination from its neighbor, computes the matrices of its own points
// meanwhile, and then waits: BT is the case of the suite that overlaps long messages with
// computation (T1 figure 4.17 counts 30 % less time in waits with speculation).
package bt
