// Package guard limits how often peers may guess memory keys. Keys are random, so a
// peer without a key can only guess, and every refused access is a strike. After
// MaxStrikes the device accepts nothing more from that peer and reports it
// (rdma.OpDisconnected). With 32-bit keys and a thousand regions, a guessing peer
// succeeds once in 270,000 jobs.
//
// A correct peer gets no strikes: an access to memory that was deregistered meanwhile
// is late, not guessed.
//
// A process that has the job's key can use any number of names. So all peers whose
// address was never passed to the device (Resolve, Connect) share their strikes. When
// these are used up, all accesses of such peers are refused.
package guard
