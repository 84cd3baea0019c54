//go:build amd64 && !race

package shm

// publish is a release store: a reader that loads v also sees every store before it.
//
// On amd64 stores become visible in program order, so an aligned MOV is a release store;
// sync/atomic's Store would be an XCHG, which waits for the store buffer to drain and
// halves the message rate. Two conditions hold: the compiler must not move the store up,
// which a call that is not inlined prevents, and the word must be aligned, which the
// layout ensures. A MOV does not order the store before a later load; where that matters
// (a sleeper, see wait.go), publishFenced is used or the sleeper issues the barrier.
//
//go:noinline
func (w *word) publish(v uint64) { *w = word(v) }
