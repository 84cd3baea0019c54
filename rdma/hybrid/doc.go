// Package hybrid makes one reliable-datagram device of two: datagrams for everybody
// (package rdma/dgram) and connections for the few peers that are worth one (package
// rdma/iwarp). It is the hybrid channel of T1 6.4.2: a rank begins with one socket for all
// peers, those that exchange much are moved to a connection of their own, at most
// Config.MaxConnections of them, and the least used are moved back.
//
// A user of [Open] sees an RD queue pair and nothing else. Messages between two peers
// arrive once and in order, whatever moves underneath.
//
// The road of a message, and the file for each step:
//
//	pair.go     PostSend hands it to the device that carries its peer now
//	queue.go    Poll asks the device that is likely to have something, the other one rarely
//	mate.go     what is kept of a peer: its path, its counts, its connection
//	copies.go   inline bodies that the devices below would not copy
//
// What moves a peer:
//
//	policy.go   who earns a connection, and who must make room: no clock, no I/O
//	move.go     how both ends change paths without losing order or a message: no I/O
//	control.go  what they tell each other about it
//	replay.go   repeats by datagram what a lost connection has not delivered
//	steps.go    does what move.go decides
//	connect.go  brings a connection up, beside the program
//	wait_linux  sleeps on both devices at once
//	key.go      one key for a region that both devices know
package hybrid
