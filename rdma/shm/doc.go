// Package shm implements the device for ranks on one machine. It passes messages
// through mapped memory and copies between processes in a single step.
//
// Every rank owns one segment, a memfd (or a file in /dev/shm), and maps the
// segments of the peers it communicates with. Everything addressed to a rank is in
// its own segment:
//
//	header        owner, sleeper word, the tail of the queue, bitmaps
//	shared queue  64-byte cells, any peer may append (sharedqueue.go)
//	blocks        memory for messages that do not fit a cell (blocks.go)
//	slots         memory that peers may read or write, by key (registration.go)
//	rings         one producer each, for busy senders (ring.go)
//
// A peer's first messages go through the shared queue, which costs an atomic operation on
// a cache line that all senders share. After a few of them the sender claims a ring and
// announces it with a last entry in the shared queue. The receiver reads the ring only
// after it has consumed that entry, so order is kept. No memory is reserved for peers that
// never communicate.
//
// OpRead, OpWrite and the cooperative copy (OpPull and OpPush) copy by process_vm_readv
// and process_vm_writev, after the origin has checked the target's slot. Where the kernel
// refuses these calls, the bytes are copied in and out through the ring, and the target
// serves the requests when it polls (fallback.go).
//
// Every peer can write into a segment. A value that another process has written is
// validated before it is used as a length, an offset or an index (poll.go, rejectPeer).
//
// A receiver that finds nothing may sleep (wait.go). A sender then has to wake it, but
// must not pay a fence per message for that case. A second goroutine may also wait for
// urgent messages while the receiver computes (beside.go).
//
// With a [Host] the same device serves ranks that are goroutines of one process: the
// segment is ordinary memory, and copies are plain copies.
package shm
