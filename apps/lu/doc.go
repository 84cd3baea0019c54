// Package lu is LU of the NAS Parallel Benchmarks: it solves the compressible Navier–Stokes
// equations in three dimensions by symmetric successive over-relaxation (Bailey
// 1994, application LU).
//
// A rank holds a column of the grid: a part of the x-y plane, and all of z. A relaxation
// sweep visits the points in order, because each depends on those before it in x, y and z.
// So a rank can start with a plane when its neighbors in the west and north have finished
// theirs: the ranks form a pipeline, and the wavefront passes through them diagonally. It
// sends one small message per plane and neighbor, and is the case of the suite that depends
// on latency (T1 5.5.2 counts 18 % less time in sends with frequently-used buffers).
package lu
