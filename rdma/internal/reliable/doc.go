// Package reliable is the protocol of reliable datagrams without a network: it makes
// segments of messages, numbers packets, paces them, detects loss, retransmits, drops
// duplicates and restores the order. It has no sockets, bytes or clock. A carrier
// (rdma/soft: UDP sockets, or any UD queue pair) passes the time and the
// fields of received packets, and sends what [Peer.Next] returns.
//
// There are two kinds of numbers, as in multipath QUIC (draft-ietf-quic-multipath):
//
//   - A [Sequence] counts the segments to one peer. It orders them and reveals
//     duplicates. A retransmission has the same sequence.
//   - A [Number] counts the packets on one path to that peer. Every transmission has a
//     new one (RFC 9000 section 12.3), so an ack is never ambiguous.
//
// A segment is a part of one message and has one or more packets, its run. All packets
// of a run are sent together, and only those that are lost are sent again, on any path.
//
// [Peer] is both halves of the protocol for one peer. Its files:
//
//	message.go      messages, segments and packets
//	sender.go       Push queues a message; Next returns what may be transmitted
//	acknowledge.go  Acknowledge processes an ack and returns finished messages; Expire
//	                processes timeouts
//	choose.go       which of several paths carries what is sent next
//	failover.go     whether a path delivers; what happens to a path that does not
//	path.go         what is kept about a path: packets in flight, and numbers received
//	congestion.go   how much may be in flight on a path, and how fast it is sent
//	receiver.go     Classify and Accept for segments; acks of packets
//	pool.go         memory for busy peers
package reliable
