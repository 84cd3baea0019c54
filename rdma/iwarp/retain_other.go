//go:build !linux || muster_portable

package iwarp

// Config.Retain needs sockets that report which bytes the peer's kernel has acked.

const retains = false

type marks struct{}

func (q *queuePair) retained() bool { return false }

func (q *queuePair) mark() {}
