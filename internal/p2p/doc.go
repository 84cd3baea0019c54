// Package p2p implements point-to-point messaging as a pure state machine: matching,
// ordering, flow control, and the protocols that carry a message. It does no I/O, reads
// no clock, starts no goroutine and takes no lock. Package engine, the shell, runs it on
// devices. The tests run it with scripts (testdata) and through every order of delivery
// (explore_test.go).
//
// The input is a call or an event; the resulting actions are in [Out]:
//
//	Send, Recv, Cancel, Probe …   calls of the user
//	HandlePacket(link, packet)    a packet has arrived from a peer
//	HandleCompletion(id, status)  a work request has completed
//	HandleTaken(id)               the device has copied an inline request
//	Fail, FailLink                a peer has failed
//	                              → Out.WR   work requests to post, in order
//	                              → Out.Done operations that have completed
//
// Deadlock freedom: which requests may wait for the peer's application. A link's packets
// and work requests are posted in order, so one that the device does not accept blocks
// all behind it. Everything the machine posts must therefore complete by progress alone:
// because the peer's library polls, whatever the peer's program does next. An RDMA
// request is posted when both its ends are known, after the match or for an offered
// buffer. The only exception is the OpPush of rndv_coop, which waits for the receive: the
// device has separate room for these (rdma.Attr.MaxPush), and the machine posts no more
// than that. Apart from that, an unmatched send holds only its Xfer, a registration from
// a share reserved for such sends (register.go), and a Msg at the receiver. Decision 036
// covers all requests; the explorer checks the rule.
//
// The files, in the order in which a message uses them:
//
//	machine.go        the calls
//	protocol.go       choice of the protocol by size and cost
//	eager.go          data travels with the envelope
//	eager_ring.go     the same by RDMA Write into a ring that the receiver polls
//	rndv_get.go       RTS; the receiver reads the data; FIN
//	rndv_put.go       RTS, CTS; the sender writes the data; FIN
//	rndv_coop.go      RTS; both sides copy pieces of the data
//	rndv_spec.go      RTR from an early receiver; the sender writes; FIN
//	onesided.go       one-sided transfers for windows
//	cut.go            transfers longer than one work request
//	grant.go          transfers that wait for others to the same rank
//	register.go       registrations of buffers, and a full registration table
//	credit.go         flow control of eager messages
//	source.go         eager messages sent from the user's buffer
//	stage.go          bounce buffers of puts and gets
//	arrival_notice.go which peers have arrived, for collectives
//	spec_history.go   whether the RTRs of an envelope pay
//	revoke.go         cancelling receives, with or without an RTR
//	note.go           notes between engines; contexts that were given up
//	wire.go           packet formats
//	emit.go           outgoing packets and work requests
//	arrive.go         incoming packets: ordering and dispatch
//	match.go          matching of messages and receives
//	xfer.go           the state of one operation; pools and handles
//	link.go           the state of one peer
//	failure.go        operations that fail
package p2p
