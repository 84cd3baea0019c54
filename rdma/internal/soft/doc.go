// Package soft has the parts that all software devices share. A software device does in
// the calling goroutine, and in a progress thread of its own, what an adapter does in
// hardware.
//
//	device.go    the lock, the hooks of the device, and closing
//	cq.go        completion queues: ready completions, and the buffers lent with them
//	srq.go       receive queues: posted buffers, the number of lent ones, the low-water mark
//	wait.go      waiting for a completion queue, by its poller and by a second goroutine
//	wake_*.go    the system calls of a wait
//	thread.go    the progress thread of a device that is used alone
//	regions.go   registered memory, and the checks of strict mode
//	check.go     the checks of arguments, with one text for all devices
//
// A device owns a [Device] and gives it its lock and [Hooks]. It implements Poll and
// PostSend itself, with the methods of [CQ], [SRQ] and [Device], so that a message passes
// through no interface. Everything is called with the device's lock held, except for the
// methods of package rdma's interfaces, which take it.
package soft
