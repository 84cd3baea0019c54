// Package traffic assigns ranks to hosts so that ranks that send each other much share one.
//
// [Matrix] is the number of bytes between each two ranks, and [Matrix.Assign] improves a
// given placement. The problem is to partition a graph into parts of given sizes with few
// bytes between them, which is NP-hard. Assign compares two local optima: one from the given
// placement, one from parts that are grown rank by rank. Both are refined by exchanges between
// pairs of hosts (Kernighan 1970).
//
// The package does no I/O, and the same input gives the same placement.
package traffic
