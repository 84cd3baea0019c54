// Package rma is one-sided communication (MPI-4.1 chapter 12) as far as it can be
// said without I/O: what a rank may do when (epoch.go), what the memory of a rank
// does on request (target.go, combine.go), who has its lock (lock.go), and what the
// requests look like (request.go).
//
// It takes no lock, starts no goroutine and reads no clock. A request goes in, and
// answers come out:
//
//	Target.Serve(from, request)  → Answers, in the order in which they are to be sent
//
// Requests of one origin are served in the order in which it made them, so
// accumulates of one origin to one place happen in program order (MPI-4.1 section
// 12.7.2). A request is served whole before the next, so every accumulate is atomic
// beside all others, not only element by element.
//
// The shell is internal/engine (onesided.go), which carries requests by messages,
// and package mpi. Where ranks can reach each other's memory, and devices do so by
// themselves, nothing of this is on the way of a put or get.
package rma
