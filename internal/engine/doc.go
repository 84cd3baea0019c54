// Package engine drives the pure point-to-point machine on devices. It is the
// only shell: it owns the lock, polls the completion queues, posts what the
// machine wants posted, opens links on first use, and lets callers wait without
// burning a core.
//
//	engine.go     what it is made of; start and end
//	calls.go      send, receive, probe, cancel
//	collective.go schedules of collectives over the same messages
//	attendance.go who has arrived at a collective
//	onesided.go   windows: memory of others, by the device or by request
//	progress.go   poll, post, deliver
//	lock.go       the lock
//	wait.go       waiting: who drives, who sleeps, when to yield and park
//	deputy.go     progress while the application computes
//	gate.go       waiting at a barrier's gate
//	lanes.go      the devices
//	links.go      a peer's first contact
//	failure.go    a rank has died
//
// Every call is safe from many goroutines. One lock guards the machine and the
// devices. Of the goroutines that wait, one drives: it polls, with the lock held
// as long as nobody else wants it, then yields the core, then parks in the
// device. The others sleep until their operation is done or it is their turn to
// drive. A program with one goroutine never meets any of this: it takes a free
// lock, and polls.
package engine
