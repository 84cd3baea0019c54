//go:build !race

package shmem

// Publish is a release store: a reader that loads v also sees every store before it.
//
// On amd64 stores become visible in program order, so an aligned MOV is a release store;
// sync/atomic's Store would be an XCHG, which waits until all earlier stores have reached
// lines that other cores are reading, and halves the rate of messages. The compiler must
// not move the store up, which a call that is not inlined prevents. A MOV does not order
// the store before a later load: where that matters, for a reader that may sleep, the
// writer uses PublishFenced or the sleeper calls GlobalBarrier.
//
//go:noinline
func (w *Word) Publish(v uint64) { *w = Word(v) }

// Note is Publish for a word of which it does not matter when others see it: it is inlined.
// The compiler and the processor keep the order of stores.
func (w *Word) Note(v uint64) { *w = Word(v) }
