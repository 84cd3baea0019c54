//go:build amd64 && !race

package shm

// publish stores v so that whoever loads it also sees every store before it.
//
// On amd64 stores become visible in program order, so an aligned MOV is a
// release store; sync/atomic's Store would be an XCHG, which waits for the store
// buffer to drain and halves the message rate. Two things are needed and hold:
// the compiler must not move the store up, which a call that is not inlined
// prevents, and the word must be aligned, which the layout ensures. What a MOV
// does not do is order the store before a later load; where that matters (a
// sleeper, see wait.go) publishFenced is used or the sleeper pays.
//
//go:noinline
func (w *word) publish(v uint64) { *w = word(v) }
