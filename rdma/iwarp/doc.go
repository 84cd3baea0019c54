// Package iwarp implements RDMA over any network that carries TCP: RDMAP over DDP over MPA,
// as specified by RFC 5040, 5041, 5044, 6581 and 7306. A device of this package
// interoperates with other implementations of iWARP.
//
// From the wire up:
//
//   - mpa_*.go: the request and reply that begin a connection, and the framing of what
//     follows. No I/O: bytes in, bytes out.
//   - package rdma/internal/ddp: headers, steering tags and placement.
//   - listener.go, connect.go: a listening socket for the device, and one TCP connection
//     for each queue pair.
//   - send.go, batch.go, receive.go, direct.go: sending, several messages of a burst together,
//     receiving, and payload that is read straight to its destination. The goroutine that
//     polls a completion queue reads and writes the sockets of its queue pairs itself.
//   - tls.go, secret.go: encryption between MPA and TCP, optional: the handshake of TLS 1.3, and
//     the records that follow it.
//   - socket_linux.go, socket_unsafe.go: sockets of Linux, with epoll. socket_portable.go
//     and stream_portable.go are the same on package net, for other systems and for the
//     build tag muster_portable. mesh.go has RD queue pairs there.
//   - completion.go, receivequeue.go: the queues, and the Poll that drives the sockets. Package
//     rdma/internal/soft has what they share with other devices: waiting, the progress
//     thread, registered memory.
//
// One device connects to another by the address of a queue pair, and both prove that they
// have the job's key. A peer of another implementation, such as Linux's soft-iWARP, is
// dialled by IP address and port, or awaited with [Anybody].
//
// A refused access ends its connection, as RFC 5040 section 5.4 requires. From then on
// accesses of that queue pair complete with rdma.StatusRemoteAccess and messages with
// rdma.StatusFault.
package iwarp
