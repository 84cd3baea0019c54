// Package shm is the device for ranks on one machine: it passes messages
// through mapped memory and copies between processes in a single step.
//
// Every rank owns one segment, a memfd (or a file in /dev/shm), and maps the
// segments of the peers it talks to. All that is addressed to a rank lies in
// its own segment:
//
//	header        who owns it, the sleeper word, the tail of the queue, bitmaps
//	shared queue  64-byte cells, any peer may append (sharedqueue.go)
//	blocks        room for messages that do not fit a cell (blocks.go)
//	slots         what peers may read or write, by key (registration.go)
//	rings         one producer each, for peers that send much (ring.go)
//
// A peer's first messages go through the shared queue, which costs an atomic
// operation on a line that all senders share. After a few of them the sender
// claims a ring and announces it with a last entry in the shared queue; the
// receiver looks at the ring only after it has consumed that entry, so order is
// kept. Nothing is set aside for peers that never talk.
//
// OpRead, OpWrite and the cooperative copy (OpPull and OpPush) move bytes by
// process_vm_readv and process_vm_writev, after the origin has checked the
// target's slot. Where the kernel refuses these calls the bytes are copied in and
// out through the ring, and the target serves them when it polls (fallback.go).
//
// Every peer can write into a segment. A value that another process has written is
// checked before it is used as a length, an offset or a number (poll.go, distrust).
//
// A receiver that finds nothing may park (wait.go). A sender then has to wake
// it, but must not pay a fence per message for the chance that it does. Somebody
// may also wait beside a receiver that computes, for urgent messages (beside.go).
//
// With a [Host] the same device serves ranks that are goroutines of one
// process: the segment is ordinary memory, and copies are plain copies.
package shm
