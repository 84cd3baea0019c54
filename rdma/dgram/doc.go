// Package dgram carries RDMA over datagrams: iWARP without connections, as
// chapter 6 of T1 lays it down for UD, and with the reliable datagrams (RD) that
// it left open. A process has one UDP socket however many peers it has, and an
// idle peer costs a few hundred bytes.
//
// [Open] makes a device. Its queue pairs are of two kinds:
//
//   - UD: a message is one datagram, which may be lost. The send completes when the
//     kernel has taken it, and the receiver learns who sent it. A Write-Record goes to
//     registered memory, as far as it is not lost, and its target learns what has come.
//     Who sent something that is of no use to the peer is told ([rdma.OpRefused]).
//   - RD: reliable and ordered for each peer, with messages of any length up to
//     Attr.MaxSend, and RDMA Write and Read.
//
// Every datagram is sealed with the key of the job. One that is not is dropped before
// anything is done for it, so that a port scanner costs nothing; [Device.Drops] counts
// them. With Config.Encrypt nobody else can read them.
//
// The road of a message, and the file for each step:
//
//	pair        PostSend takes it; a peer that has work is served by tend        pair.go
//	            Write and Read become messages with an answer                    access.go
//	            UD remembers whom it sent what, and cuts Write-Records           throw.go
//	sender      a message is cut into segments, each with a sequence number      sender.go
//	            what the peer has is forgotten, what was lost goes again         acknowledge.go
//	            how much may be under way, and when the next may leave           congestion.go
//	wire        header, DDP segment, CRC32C and authentication tag               wire.go, seal.go
//	kernel      datagrams leave and come in batches                              outbox.go, socket_linux_unsafe.go
//	receiver    duplicates are dropped, order is restored, acks written      receiver.go
//	            segments become messages, messages become completions            arrive.go, queues.go
//	            UD: a message, a piece of a Write-Record, an error message       catch.go, record.go, refuse.go
//
// All of that happens in Poll and PostSend of the program, under one lock. While it
// computes, a goroutine does it instead (attend.go); while it waits, nobody (wait.go).
//
// Sender, receiver and wire know no socket and no clock: time comes in as the bytes
// do. Their tests run them over a simulated network that loses, doubles, reorders and
// corrupts, simulated minutes in real milliseconds.
package dgram
