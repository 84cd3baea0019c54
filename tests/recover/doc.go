// Package recover tests that applications survive the loss of a host of a lab: with
// mpi.Recover, checkpoints in memory and spares, or with fewer ranks. It needs root.
package recover
