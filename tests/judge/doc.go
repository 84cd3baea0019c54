// Package judge runs programs that others have written on Muster's libmpich.so.12 (package cabi)
// and on MPICH, and compares them. The commands tests/mpich and tests/debian say which programs.
package judge
