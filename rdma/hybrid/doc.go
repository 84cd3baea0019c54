// Package hybrid combines two devices into one reliable-datagram device: datagrams for all
// peers (package rdma/soft) and connections for the few peers that are worth one (package
// rdma/iwarp). It is the hybrid channel of T1 6.4.2: a rank begins with one socket for all
// peers. Busy peers are moved to a connection of their own, at most Config.MaxConnections of
// them, and the least used are moved back.
//
// A user of [Open] sees only an RD queue pair. Messages between two peers arrive once and in
// order, whichever path they take.
//
// The path of a message, and the file for each step:
//
//	pair.go     PostSend passes it to the device that carries its peer now
//	queue.go    Poll polls the device that is likely to have completions, the other rarely;
//	            a wait sleeps on both
//	peer.go     the state of a peer: its path, its counts, its connection
//
// Changing the path of a peer:
//
//	policy.go   which peers get a connection, and which must give theirs up: no clock, no I/O
//	move.go     how both ends change paths without losing order or a message: no I/O
//	control.go  the notices that they exchange
//	replay.go   repeats by datagram what a lost connection has not delivered
//	steps.go    carries out what move.go decides
//	connect.go  establishes a connection in the background
package hybrid
