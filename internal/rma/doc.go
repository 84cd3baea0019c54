// Package rma implements the parts of one-sided communication (MPI-4.1 chapter 12) that
// need no I/O: epochs (epoch.go), serving requests on a rank's memory (target.go,
// combine.go), the lock of that memory (lock.go), and the format of requests (request.go).
//
// It takes no lock, starts no goroutine and reads no clock. The input is a request, the
// output its answers:
//
//	Target.Serve(from, request)  → Answers, in the order in which to send them
//
// Requests of one origin are served in the order in which it made them, so accumulates of
// one origin to one location happen in program order (MPI-4.1 section 12.7.2). Each request
// is served completely before the next, so every accumulate is atomic as a whole, not only
// element by element.
//
// Package engine (onesided.go) carries requests by messages. Where memory is mapped or the
// device supports RDMA, puts and gets do not use this package.
package rma
