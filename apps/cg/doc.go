// Package cg is CG of the NAS Parallel Benchmarks: it estimates the smallest eigenvalue of
// a large sparse matrix with random entries by the inverse power method, whose linear
// systems it solves by conjugate gradients (Bailey 1994, kernel CG).
//
// The ranks form a grid, and each owns a block of the matrix. A product with a vector
// needs a sum over the ranks of a row of the grid and an exchange across its diagonal;
// inner products need a sum of a single number. So CG shows the latency of small messages
// and reductions.
//
// The files follow the program: cg.go is the power method, solve.go the solver, grid.go
// the distribution and its communication, matrix.go the matrix.
package cg
