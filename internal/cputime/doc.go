// Package cputime returns the processor time of this process: all its threads, in user mode
// and in the kernel. Tests and benchmarks use it to check that waiting uses no CPU.
package cputime
