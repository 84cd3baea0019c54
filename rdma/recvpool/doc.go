// Package recvpool manages the receive buffers of a queue whose device does not provide
// its own: few while few are needed, more when the device reports a low watermark, and few
// again after a quiet time. P3 (section 2.3) does so for its shared receive queue: memory
// then depends on how much arrives at once, not on the number of peers.
//
// The states of a buffer:
//
//	Start          posts the first slab
//	Took           a message has arrived in a buffer, which belongs to its reader until
//	Return         it is returned: it is reposted, or freed if there are too many
//	RanLow         the device has few buffers left: their number is doubled, up to a bound
//	RecordDrained  all messages were taken: after a quiet time half of the buffers are freed
//
// A posted buffer cannot be withdrawn. So a buffer that is to be freed is not reposted
// after the next message in it, and its slab is freed with its last buffer.
//
// The pool does I/O only through the functions of its Config, reads no clock, and is not
// safe for concurrent use.
package recvpool
