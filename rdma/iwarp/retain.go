package iwarp

import "github.com/muster-mpi/muster/rdma"

// RetainQP is a queue pair of a device with Config.Retain. Its user keeps a copy of each
// request until CountAcked covers it. When the connection is lost (OpDisconnected with
// StatusPeerGone), incomplete requests stay incomplete, as do requests that are posted
// afterwards. The user then calls CloseDrained, asks the peer how many messages it has
// received, and repeats the others over another path.
//
// The kernel's ack is sufficient to discard a message: what it has acked is in the peer's
// receive queue, and Linux lets a process read that queue after a reset. So a peer that
// calls CloseDrained receives every message that was acked here.
type RetainQP interface {
	rdma.QP
	// CountAcked is the number of requests, counted from the first, that need not be repeated:
	// all of them are complete, and the peer's kernel has acked their bytes.
	CountAcked() uint64
	// CloseDrained closes the queue pair if everything that the peer's messages are made
	// of has been received and polled; otherwise it does nothing and returns false. It
	// calls unfinished for each request that is not complete, by its number.
	CloseDrained(unfinished func(number uint64)) bool
}

// SharingDevice is a device of [Open], for a user with another path to the peers that uses
// one key for memory over both.
type SharingDevice interface {
	rdma.Device
	// RegisterAs registers memory under the key that another device has drawn for it.
	RegisterAs(mr rdma.MR, mem []byte, acc rdma.Access) error
}
