// Package engine runs the point-to-point state machine of package p2p on devices.
// It owns the lock, polls the completion queues, posts the machine's work requests,
// opens links on first use, and blocks callers without occupying a core.
//
//	engine.go          the Engine: configuration, start and end
//	held.go            what the lock guards
//	calls.go           receive, wait, probe, cancel
//	send.go            send; the path of a short message
//	collective.go      runs the schedules of collectives over the same messages
//	arrivals.go        which peers have arrived at a collective
//	onesided.go        windows: remote memory, by RDMA or by request
//	progress.go        poll, post, deliver
//	lock.go            the lock
//	wait.go            waiting: driving, sleeping and parking
//	wait_strategy.go   what a waiter does between two polls
//	wait_memory.go     waiting for a word in shared memory
//	progress_thread.go background progress while the application computes
//	gate.go            the gate of a job's barrier
//	direct.go          what the C front shares with the engine
//	lanes.go           the devices
//	links.go           connections to peers, opened on first use without the lock
//	failure.go         death of a rank
//	tolerate.go        jobs that survive it
//	broken.go          failed collectives
//
// All calls are safe for concurrent use. One lock guards the machine and the
// devices: methods of Engine and Window take it, those of Held and heldWindow need it. One of the waiting goroutines is the driver: it polls with the lock held
// until another goroutine wants the lock, then yields the core, then parks in the
// device. The other goroutines sleep until their operation has completed or the
// driver hands over to them. A program with one goroutine takes an uncontended lock
// and polls; it needs none of this.
package engine
