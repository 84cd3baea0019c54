// Package is is IS of the NAS Parallel Benchmarks: it ranks integer keys, as a parallel
// bucket sort does (NPB report RNR-94-007, section 2.7). In each iteration the ranks add up
// the sizes of their buckets, divide the buckets among themselves, and send every key to
// the rank that has its bucket. So IS shows the bandwidth of Alltoallv.
package is
