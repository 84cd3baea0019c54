// Package dgram carries RDMA over datagrams: iWARP without connections, as
// chapter 6 of T1 lays it down for UD, and with the reliable datagrams (RD) that
// it left open. A process has one UDP socket however many peers it has, and an
// idle peer costs a few hundred octets.
//
// The road of a message, and the file for each step:
//
//	sender      a message is cut into segments, each with a sequence number   sender.go
//	            what the peer has is forgotten, what was lost goes again      acknowledge.go
//	            how much may be under way, and when the next may leave        congestion.go
//	wire        header, DDP segment, CRC32C and authentication tag            wire.go, seal.go
//	receiver    duplicates are dropped, order is restored, receipts written   receiver.go
//
// None of these knows a socket or a clock: time comes in as the octets do. The
// tests run them over a simulated network that loses, doubles, reorders and
// corrupts, thousands of simulated seconds in a few real ones.
package dgram
