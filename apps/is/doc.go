// Package is is IS of the NAS Parallel Benchmarks: it ranks integer keys, as a parallel
// bucket sort does (Bailey 1994, kernel IS). In each iteration the ranks add up
// the sizes of their buckets, divide the buckets among themselves, and send every key to
// the rank that has its bucket. So IS shows the bandwidth of Alltoallv.
package is
