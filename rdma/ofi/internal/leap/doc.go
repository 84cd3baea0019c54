// Package leap calls short C functions without involving the Go scheduler.
//
// A call through cgo informs the Go scheduler that the thread may be blocked for long, and
// afterwards acquires a P again: four atomic instructions and accesses to data that the last
// system call has evicted from the caches, 150 to 200 ns where a message takes a few
// microseconds. A C function that is known to return at once needs none of that, only a stack
// that is large enough for C, and [Call] runs it on one.
//
// While it runs, the thread looks to the scheduler like one in a long stretch of Go code
// without a safe point: a garbage collection waits for its return. So the function must not
// block, must not call into Go, and must not unwind or longjmp out. Asynchronous preemption
// leaves such a thread alone, because the interrupted address is not in Go code, and Call
// itself is assembly. A profiler's signal finds no Go frame and attributes the time to
// external code.
package leap
