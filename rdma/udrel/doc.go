// Package udrel implements reliable datagrams (RD) over the unreliable datagrams (UD)
// of any device. T1 chapter 6 describes two ways to carry MPI over datagrams; this is
// the second, with reliability above the queue pair: sequence numbers, an ack for every
// 50 messages, and timeouts (T1 6.6.1). Package dgram, for comparison, implements
// reliability inside the queue pair.
//
// A process has one UD queue pair for all peers. A peer with nothing in flight to or
// from it costs less than 512 bytes.
//
// A message longer than a packet is segmented. Write and Read use the same packets: the
// peer's processor copies to or from registered memory and responds. So large messages
// need the peer's processor (Attr.RemoteCPU). While its application computes, a
// goroutine services the packets every few milliseconds (progress.go), so that a
// computing rank is not taken for a failed one.
//
// The path of a message, and the file for each step:
//
//	pair        PostSend queues it; service drives the peers that have work    pair.go
//	            Write and Read become messages with a response                 access.go
//	sender      segments a message and numbers the packets, processes acks
//	            and retransmits                                                sender.go
//	wire        the header of a packet                                         wire.go
//	            packets are sent in batches, by the device below               send.go
//	receiver    drops duplicates, keeps the order, writes acks                 receiver.go
//	            reassembles messages and queues completions                    receive.go, queue.go
//
// Sender and receiver use no device and no clock. Their tests run them over a simulated
// network that loses, duplicates and reorders packets.
//
// Packets are received into buffers that this package posts (package recvpool). So
// early packets can stay in their buffers, and a message of one packet is delivered
// without a copy.
package udrel
