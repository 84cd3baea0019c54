//go:build amd64 && !race

package nodecoll

// publish stores v so that a rank that loads it also sees every earlier store.
//
// On amd64 stores become visible in program order, so an aligned MOV is a release
// store; sync/atomic's Store is an XCHG, which waits until all earlier stores have
// reached lines that the other core is reading. The call is not inlined, so the
// compiler does not move the store up. A MOV does not order the store before a later
// load; sleep.go deals with that.
//
//go:noinline
func (w *word) publish(v uint64) { *w = word(v) }

// add records call n. The compiler and the processor keep the order of stores; when they
// become visible does not matter.
func (r *record) add(n, what uint64) {
	r.log[n%Kept] = word(what)
	r.number = word(n)
}
