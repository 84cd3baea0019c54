// Package guard limits how often peers may try keys of memory. A key is random, so who
// does not know one can only guess, and every guess that is refused is a strike. After
// MaxStrikes the device takes nothing more from that peer and reports it (rdma.OpDisconnected). With
// 32-bit keys and a thousand regions, a peer hits one of them once in 270,000 jobs.
//
// What an honest peer does is no strike: an access to memory whose registration has ended
// meanwhile is late, not guessed.
//
// A process that has the job's key can appear under any number of names. So all peers whose
// address was never given to the device (Resolve, Connect) have their strikes in common;
// when these are used up, no access of such a peer is looked at any more.
package guard
