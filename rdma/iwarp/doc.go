// Package iwarp is RDMA over any network that carries TCP: RDMAP over DDP over
// MPA, as RFC 5040, 5041, 5044, 6581 and 7306 have it. A device of this package
// talks to another one, and to whatever else speaks iWARP.
//
// From the wire up:
//
//   - mpa_*.go: the request and reply with which a connection begins, and the
//     framing of what follows. No I/O: bytes in, bytes out.
//   - package rdma/internal/ddp: headers, steering tags and placement.
//   - door.go, connect.go: a listening socket for the device, and one TCP connection
//     for each queue pair.
//   - send.go, receive.go, direct.go: what goes out, what comes in, and what is read
//     straight to its place. Whoever polls a completion queue reads and writes the
//     sockets of its queue pairs itself.
//   - secret.go: TLS 1.3 between MPA and TCP, for who wants it.
//   - sleep.go: how a completion queue is waited for.
//   - attend.go: who moves the sockets while the program computes.
//
// One device connects to another by the address of a queue pair, and both prove that
// they know the job's key. A peer of another make, such as Linux's soft-iWARP, is
// dialled by IP address and port, or awaited with [Anybody].
//
// A refused access ends its connection, as RFC 5040 section 5.4 has it. From then on
// accesses of that queue pair complete with rdma.StatusRemoteAccess and messages with
// rdma.StatusFault.
package iwarp
