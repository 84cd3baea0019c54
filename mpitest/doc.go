// Package mpitest runs the ranks of a test: n goroutines of one process, each
// with a world of its own, over the same code that runs between processes.
//
//	func TestRing(t *testing.T) {
//		mpitest.Run(t, 4, func(t *testing.T, world *mpi.Comm) {
//			next := (world.Rank() + 1) % world.Size()
//			…
//		})
//	}
//
// The same test runs between processes when a launcher starts the test binary:
//
//	go test -c -o ring.test . && muster run -n 4 ./ring.test
//
// Then each process is one rank of one job, and Run gives fn a communicator of
// the first n ranks; a test that wants more ranks than there are is skipped. The
// test binary says goodbye to the launcher in TestMain, which also looks for
// goroutines, files and mappings that the library left behind:
//
//	func TestMain(m *testing.M) { mpitest.Main(m) }
package mpitest
