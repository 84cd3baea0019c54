// Package udrel implements reliable datagrams (RD) over the unreliable datagrams (UD)
// of any device. T1 chapter 6 describes two ways to carry MPI over datagrams; this is
// the second, with reliability above the queue pair: sequence numbers, an ack for every
// 50 messages, and timeouts (T1 6.6.1). Package dgram, for comparison, implements
// reliability inside the queue pair.
//
// A process has one UD queue pair for all peers. A peer with nothing in flight to or
// from it costs at most 320 bytes.
//
// The protocol is package reliable, which has no device and no clock. Completion
// queues, receive queues, waiting, the progress thread and registered memory are those
// of package soft. This package is the carrier between them and a UD queue pair:
//
//	device      Open, and progress: the work of every Poll                     device.go
//	pair        PostSend queues a message; service drives the peers that have
//	            work                                                           pair.go, peer.go
//	            Write and Read become messages with a response                 access.go
//	send        makes packets of what reliable transmits, and sends them in
//	            batches by the device below                                    send.go, message.go, repeat.go
//	wire        the header of a packet                                         wire.go
//	receive     passes packets to reliable, reassembles messages and queues
//	            completions                                                    receive.go, queues.go
//
// A message longer than a packet is segmented. Write and Read use the same packets: the
// peer's processor copies to or from registered memory and responds, in the progress
// thread if its application computes.
//
// Packets are received into buffers that this package posts (package recvpool). So
// early packets can stay in their buffers, and a message of one packet is delivered
// without a copy.
package udrel
