// Package npb has what the applications share: the random numbers of the NAS Parallel
// Benchmarks, a clock that separates communication from computation, and the result.
package npb
