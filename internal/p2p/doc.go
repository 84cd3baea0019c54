// Package p2p is point-to-point messaging as a pure state machine: matching,
// order, flow control, and the protocols that carry a message. It does no I/O,
// reads no clock, starts no goroutine and takes no lock. One shell
// (internal/engine) drives it on devices; the tests drive it with scripts
// (testdata), and through every order of delivery (explore_test.go).
//
// A call or an event goes in, and what must be done comes out in [Out]:
//
//	Send, Recv, Cancel, Probe …   calls of the user
//	Arrived(link, packet)         a packet came from a peer
//	Completed(id, status)         a work request ended
//	Taken(id)                     the device has copied an inline request
//	Fail, FailLink                a peer is gone
//	                              → Out.WR   work requests to post, in order
//	                              → Out.Done operations that ended
//
// What may wait for the peer's application. A link's packets and work requests are
// posted in order, so one that the device does not take holds up all behind it. All that
// the machine posts must therefore end by progress alone: because the peer's library
// polls, whatever the peer's program does next. A request that moves memory is posted
// when both its ends are known, after the match or for an offered buffer. The only
// exception is the OpPush of rndv_coop, which waits for the receive: the device has room
// of its own for these (rdma.Attr.MaxPush), and no more are under way than that. A send
// that nobody has matched holds nothing else but its Xfer, a registration out of a share
// that is kept for such sends (register.go), and a Msg at the receiver. Decision 036 goes through all requests; the explorer checks it.
//
// The parts, in the order in which a message meets them:
//
//	machine.go    the calls
//	protocol.go   which protocol for which size: costs, envelope, lookup
//	eager.go      data travels with the envelope
//	eager_ring.go the same by RDMA Write into a ring that the receiver polls
//	rndv_get.go   RTS; the receiver reads the data; FIN
//	rndv_put.go   RTS, CTS; the sender writes the data; FIN
//	rndv_coop.go  RTS; both sides copy pieces of the data
//	rndv_spec.go  RTR from a receiver that is early; the sender writes; FIN
//	onesided.go   one-sided transfers for windows
//	register.go   registrations of buffers, and what happens when there are too few
//	source.go     eager messages that are sent from the user's buffer
//	stage.go      memory that puts and gets are copied through
//	arrival_notice.go which peers have arrived, for collectives
//	spec_history.go whether RTRs of an envelope pay
//	revoke.go     receives that are taken back, with or without an RTR
//	wire.go       what the packets look like
//	emit.go       packets and work requests out
//	arrive.go     packets in: order, then the protocol they belong to
//	match.go      which receive gets which message
//	xfer.go       the state of one operation; pools and handles
//	link.go       the state kept for one peer
//	failure.go    operations that end badly
package p2p
