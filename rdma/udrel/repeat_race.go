//go:build race

package udrel

import "github.com/muster-mpi/muster/rdma"

// toRepeat returns what to send for a retransmission. The peer may already have the
// segment, with only the ack lost, and the owner of the memory may change it: the peer
// drops the duplicate, whatever it contains. The race detector cannot know that, so the
// bytes are copied without instrumentation, as in package dgram.
//
//go:norace
func toRepeat(body rdma.Mem) rdma.Mem {
	from := body.Bytes()
	again := make([]byte, len(from))
	for i := range from {
		again[i] = from[i]
	}
	return rdma.MemOf(again)
}
