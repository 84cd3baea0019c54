//go:build !amd64 || race

package nodecoll

import "sync/atomic"

// publish stores v so that a rank that loads it also sees every earlier store. On arm64
// that is an STLR, which is inexpensive; the race detector derives the order from it.
func (w *word) publish(v uint64) { atomic.StoreUint64((*uint64)(w), v) }

// add records call n.
func (r *record) add(n, what uint64) {
	r.log[n%Kept].publish(what)
	r.number.publish(n)
}
