package shmem

import "time"

// membarrier(2): one thread executes a full memory barrier on the cores of others, so that
// these need none on their hot path. Global barriers cover all processes that have
// registered, private ones the threads of this process.
//
// A process registers once for each kind. That takes a grace period of the kernel (RCU),
// milliseconds, but was seen to last 45 s on a machine that has far more to do than cores.
// Callers that can do without it therefore wait for a limited time.

// Within returns the result of a registration, or false if it takes longer than limit. The
// registration goes on then.
func Within(limit time.Duration, register func() bool) bool {
	result := make(chan bool, 1)
	go func() { result <- register() }()
	select {
	case ok := <-result:
		return ok
	case <-time.After(limit):
		return false
	}
}
