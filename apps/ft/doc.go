// Package ft is FT of the NAS Parallel Benchmarks: it solves a diffusion equation on a
// three-dimensional grid by Fourier transforms (Bailey 1994, kernel FT).
//
// Each rank holds some planes of the grid, in which it transforms the first two dimensions
// by itself. For the third one it needs lines across the planes of all ranks, and gets them
// by an Alltoall of the whole grid. No other program of the suite sends more: T2 tables 6.1
// and 6.2 measure Alltoall with it.
package ft
