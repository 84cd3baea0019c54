//go:build !amd64 || race

package nodecoll

import "sync/atomic"

// publish stores v so that whoever loads it also sees every store before it. On
// arm64 that is an STLR, which costs little; the race detector learns the order
// from it.
func (w *word) publish(v uint64) { atomic.StoreUint64((*uint64)(w), v) }

// add notes call n.
func (r *record) add(n, what uint64) {
	r.log[n%Kept].publish(what)
	r.number.publish(n)
}
