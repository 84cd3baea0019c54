//go:build amd64 && !race

package engine

import (
	"sync/atomic"
	"unsafe"
)

// release gives the lock. On amd64 stores become visible in program order, so a
// plain store is a release store; sync/atomic's Store would be an XCHG, which
// waits until all earlier stores, the message among them, have reached the other
// core. The call is not inlined, so the compiler moves nothing below it. A
// waiter that looks at wanted's side of things needs no more: it tries again.
//
//go:noinline
func release(state *atomic.Uint32) { *(*uint32)(unsafe.Pointer(state)) = 0 }
