// Package ep is EP of the NAS Parallel Benchmarks: it generates pairs of Gaussian random
// numbers and counts them by size (Bailey 1994, kernel EP). Ranks compute
// without communication and add up their sums at the end, so that EP shows what the
// machine computes when nothing waits for messages.
package ep
