// Package cputime reports how much processor time this process has used, of all its threads,
// in user mode and in the kernel: for tests and benchmarks that see whether waiting is quiet.
package cputime
