// Package soft implements RDMA over UDP datagrams: iWARP without connections. T1
// chapter 6 specifies this for unreliable datagrams (UD); this package adds the
// reliable datagrams (RD) that T1 left open. A process has one UDP socket regardless of
// its number of peers, and an idle peer costs a few hundred bytes. With several
// interfaces it has one socket on each, and RD uses them together (Config.Paths).
//
// [Open] returns a device. Its queue pairs are of two kinds:
//
//   - UD: a message is one datagram, which may be lost. The send completes when the
//     kernel has accepted it. The receiver learns the sender. A Write-Record writes to
//     registered memory, and its target gets a completion for each range that has
//     arrived. The sender of a message that the peer cannot use gets an
//     [rdma.OpRefused] completion.
//   - RD: reliable and ordered for each peer, with messages of up to Attr.MaxSend
//     bytes, and RDMA Write and Read.
//
// Every datagram carries an authentication tag made with the job's key. A datagram
// without a valid tag is dropped before anything is allocated for it, so a port scan
// costs nothing. [Device.Drops] counts dropped datagrams. Config.Encrypt also encrypts
// them.
//
// The path of a message, and the file for each step:
//
//	pair        PostSend queues it; service drives the peers that have work      pair.go
//	            Write and Read become messages with a response                   access.go
//	            UD records recent messages, and segments Write-Records           send_datagram.go
//	reliable    segments messages, numbers packets, paces them, retransmits,
//	            drops duplicates, restores order, writes acks                    package reliable, message.go, peer.go
//	wire        header, DDP segment, CRC32C and authentication tag               wire.go, seal.go
//	            several packets with one header and tag                          run.go, run_encrypted.go, assemble.go
//	kernel      datagrams are sent and received in batches                       outbox.go, socket_linux_unsafe.go
//	            several sockets, and the endpoints of a peer they lead to        paths.go
//	            or they are messages of a UD queue pair of another device        carrier.go
//	receiver    reassembles messages and queues completions                      receive.go, queues.go, timers.go
//	            long payload goes to its target without a copy                   inplace.go
//	            UD: messages, pieces of Write-Records, error messages            receive_datagram.go, record.go, refuse.go
//
// Poll and PostSend do all of this in the caller's goroutine, under one lock. While the
// application computes, the progress thread does it instead. While the application waits,
// both sleep until a datagram arrives or a timer is due (package rdma/internal/soft).
//
// The protocol is package reliable, which has no socket, no clock and no bytes. This
// package is its carrier over UDP, and with Config.Device over the unreliable datagrams of
// any device: T1 chapter 6 has reliability inside the queue pair and above it.
package soft
