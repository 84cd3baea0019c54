// Package mpi implements the Message Passing Interface (MPI-4.1) for Go.
//
// A job consists of ranks, numbered from 0. All ranks run the same program, each
// in its own process (started by "muster run", Hydra or another launcher) or, in
// tests, as goroutines of one process (package mpitest). They communicate by
// sending slices to each other and by collective calls:
//
//	func main() {
//		mpi.Main(func(world *mpi.Comm) error {
//			sum := []int{world.Rank()}
//			if err := mpi.Allreduce(world, sum, sum, mpi.Sum); err != nil {
//				return err
//			}
//			if world.Rank() == 0 {
//				fmt.Println("sum of ranks:", sum[0])
//			}
//			return nil
//		})
//	}
//
// # Data
//
// The elements of a message may have any type without pointers: numbers, and
// arrays and structs of them. [SendValue] and [RecvValue] transfer values of all
// other types that encoding/gob can encode. Calls that carry data are functions
// rather than methods, because methods cannot have type parameters.
//
// # Collective calls
//
// Each collective has three forms: [Allreduce] blocks; [Iallreduce] returns a
// [Request], like [Isend]; [AllreduceInit] prepares a call that can be started
// many times. All ranks of a communicator make the same collective calls in the
// same order and in the same form. Instead of MPI_IN_PLACE, pass nil for the
// other slice, or the same slice twice. The variants with blocks of different
// lengths take counts and displacements in elements; nil displacements place the
// blocks one after the other.
//
// # Topologies
//
// Ranks can have neighbors on a grid ([Comm.CartCreate]) or in a graph
// ([Comm.GraphCreate], [Comm.DistGraphCreate]). A rank exchanges data with all its
// neighbors in one call, such as [NeighborAlltoall], and [Near] assigns neighbors
// to the same node where possible. [Comm.IntercommCreate] connects two groups that
// work on different tasks.
//
// # Coming from MPI
//
// MPI_Comm is [Comm]. MPI_Isend and similar calls return a [Request], to be
// completed with [Request.Wait], [WaitAll] and so on. MPI_ANY_SOURCE, MPI_ANY_TAG
// and MPI_PROC_NULL are [AnySource], [AnyTag] and [ProcNull]. Calls return errors;
// errors.Is(err, mpi.ErrTruncate) tests for an error class. They do not end the
// program, except [World.Abort] and [Main], and a rank whose launcher has died
// ends half a second after its calls have returned that. The thread level is always MPI_THREAD_MULTIPLE: any goroutine may make
// any call.
//
// # Coming from Go
//
// A send may return before the message is received, so it does not synchronize
// two ranks; [Ssend] does. The library owns the buffer of a call that starts with
// I until the request is complete. Messages between two ranks of a communicator
// arrive in the order in which they were sent.
//
// A context ends a wait, so requests take it: [Request.WaitContext] and, for a
// receive, [Request.WaitOrCancel]. Every blocking call has a form that returns a
// request. Two loops take a context too: [Comm.Messages] probes, and [Completions]
// waits for several requests.
//
// Package mpi/inspect reports which protocols, algorithms and devices a job uses.
package mpi
