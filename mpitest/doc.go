// Package mpitest runs the ranks of a test as goroutines of one process, each
// with its own world, with the same code that runs between processes.
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
// Each process is then one rank of one job, and Run passes fn a communicator of n
// ranks; a test that needs more ranks than the job has is skipped. The test binary
// leaves the job in TestMain, which also checks for leaked goroutines, files and
// mappings:
//
//	func TestMain(m *testing.M) { mpitest.Main(m) }
package mpitest
