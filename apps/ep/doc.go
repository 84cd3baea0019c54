// Package ep is EP of the NAS Parallel Benchmarks: it generates pairs of Gaussian random
// numbers and counts them by size (NPB report RNR-94-007, section 2.1). Ranks compute
// without communication and add up their sums at the end, so that EP shows what the
// machine computes when nothing waits for messages.
package ep
