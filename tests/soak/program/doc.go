// Package program makes random message passing programs from a seed: messages in all modes,
// collectives, windows and communicators. Every rank derives the same program, so it knows
// every value that must arrive, and checks it. A program survives failures of ranks if the
// job does (mpi.Config.OnFailure).
package program
