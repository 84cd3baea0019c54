// Package udrel makes reliable datagrams (RD) of unreliable ones (UD), whatever device
// has them: the second way of T1 chapter 6 to carry MPI over datagrams, with reliability
// above the queue pair. T1 6.6.1 has it as sequence numbers, an ack for every 50
// messages, and time-outs; package dgram, for comparison, has reliability inside the queue
// pair.
//
// A process has one UD queue pair for all peers. A peer that nothing is under way to or
// from costs less than 512 bytes.
//
// A message that is longer than a packet is cut. Write and Read are made of the same
// packets: the peer's processor places them into registered memory, or reads it, and
// answers. So large messages need the peer's processor (Attr.RemoteCPU). While its
// program computes, a goroutine looks after the packets every few milliseconds
// (attend.go), so that nobody takes a rank that computes for a dead one.
//
// The road of a message, and the file for each step:
//
//	pair        PostSend takes it; a peer that has work is served by tend      pair.go
//	            Write and Read become messages with an answer                  access.go
//	sender      a message is cut into packets, each with a number; what the
//	            peer has is forgotten, what was lost goes again                sender.go
//	wire        the header of a packet                                         wire.go
//	            packets leave in batches, by the device below                  depart.go
//	receiver    duplicates are dropped, order is kept, acks written        receiver.go
//	            packets become messages, messages become completions           arrive.go, queue.go
//
// Sender and receiver know no device and no clock. Their tests run them over a simulated
// network that loses, doubles and reorders.
//
// Packets come into buffers that the package posts (package recvpool), so that those which
// came early can wait where they are, and a message that fills no more than one packet is
// shown where it came.
package udrel
