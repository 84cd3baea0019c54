// Package prof defines the counters of the ranks of a job and formats them on one
// screen.
//
// The [Counters] of a rank are plain values: messages and bytes, their lengths, memory
// by purpose, connections, retransmissions. They are counted in memory private to the
// rank while the program runs, or computed on request; the cost for the program does not
// depend on whether they are read. (*mpi.World).Profile returns those of the calling rank.
//
// At the end of a job with profiling enabled, the ranks combine their counters along a
// tree into one [Summary]: for each counter the sum, the minimum, the maximum and the
// rank with the maximum. The length of the messages depends on the number of counters,
// not on the number of ranks.
//
// [Arrivals] is another profile: the times at which the ranks entered and left each
// collective, by one [Clock], and their statistics for each call site of the program.
// A rank records its calls; the records are combined in the same way.
package prof
