// Package recvpool keeps receive buffers for a queue whose device does not bring its own:
// few while few are needed, more when the device says that it runs low, and few again
// after a quiet time. P3 (section 2.3) does so for its shared receive queue: memory then
// follows how much comes at once, and not how many peers there are.
//
// The road of a buffer:
//
//	Start    posts the first slab
//	Took     a message has come in a buffer, which is its reader's until
//	Return   it is given back: it is posted again, or given up if there are too many
//	RanLow   the device has few buffers left: as many again are posted, up to a bound
//	Drained  everything that came was taken: after a quiet time half of them are given up
//
// A buffer that is posted cannot be called back. So one that is to be given up is posted
// no more after the next message in it, and the slab goes when its last buffer has come.
//
// The pool does no I/O but by the functions it is given, reads no clock, and is not for
// several goroutines at once.
package recvpool
