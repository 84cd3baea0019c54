//go:build amd64 && !race

package nodecoll

// publish stores v so that whoever loads it also sees every store before it.
//
// On amd64 stores become visible in program order, so an aligned MOV is a release
// store; sync/atomic's Store is an XCHG, which waits until all earlier stores have
// reached lines that the other core is looking at. The call is not inlined, so the
// compiler does not move the store up. What a MOV does not do is order the store
// before a later load: see sleep.go.
//
//go:noinline
func (w *word) publish(v uint64) { *w = word(v) }

// add notes call n. The compiler keeps the order of stores, and so does the processor;
// when they are seen does not matter.
func (r *record) add(n, what uint64) {
	r.log[n%Kept] = word(what)
	r.number = word(n)
}
