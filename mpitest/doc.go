// Package mpitest runs ranks inside a test: n goroutines of one process, each
// with a world of its own, over the same code that runs between processes.
//
//	func TestRing(t *testing.T) {
//		mpitest.Run(t, 4, func(t *testing.T, world *mpi.Comm) {
//			next := (world.Rank() + 1) % world.Size()
//			…
//		})
//	}
//
// When the test binary itself was started by a launcher (muster run, Hydra) with
// as many ranks as the test wants, the process is one of them and the test runs
// between processes; with another number it is skipped.
package mpitest
