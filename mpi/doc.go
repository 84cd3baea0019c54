// Package mpi is message passing for Go, with the semantics of MPI and the
// manners of Go.
//
// A job consists of ranks, numbered from 0. They run the same program, each in
// a process of its own (started by "muster run", Hydra or another launcher) or,
// in tests, as goroutines of one process (package mpitest). They work together
// by sending slices to each other and by collective calls:
//
//	func main() {
//		mpi.Main(func(world *mpi.Comm) error {
//			sum := []int{world.Rank()}
//			if err := mpi.Allreduce(world, sum, sum, mpi.Sum[int]()); err != nil {
//				return err
//			}
//			if world.Rank() == 0 {
//				fmt.Println("sum of ranks:", sum[0])
//			}
//			return nil
//		})
//	}
//
// Elements may be of any type that holds no pointers: numbers, arrays and
// structs of them. Anything else that can be encoded goes by [SendValue] and
// [RecvValue]. Functions rather than methods carry the element type, since
// methods cannot be generic.
//
// Collective calls come in three forms: [Allreduce] waits; [Iallreduce] returns a
// [Request] like [Isend]; [AllreduceInit] prepares a call that is started again and
// again. All ranks of a communicator make them in the same order, and use the same
// form. Where MPI has MPI_IN_PLACE, nil stands for the slice that is not there, or
// the same slice is given twice. The forms with blocks of any length take counts
// and places in elements; places that are nil put one block after the other.
//
// Ranks can be given neighbors: on a grid ([Comm.CartCreate]) or in a graph
// ([Comm.GraphCreate], [Comm.DistGraphCreate]). Neighbors exchange in one call,
// such as [NeighborAlltoall], and [Near] puts them onto the same node. Two groups
// that work on different things are joined by [Comm.IntercommCreate].
//
// For those who know MPI: MPI_Comm is [Comm]; MPI_Isend and the like return a
// [Request], a value that is waited for with [Request.Wait], [WaitAll] and so
// on; MPI_ANY_SOURCE, MPI_ANY_TAG and MPI_PROC_NULL are [AnySource], [AnyTag]
// and [ProcNull]; errors are returned, never fatal by themselves, and
// errors.Is(err, mpi.ErrTruncate) asks for the error class; MPI_THREAD_MULTIPLE
// is the only level there is: every call may be made from any goroutine.
//
// For those who know Go: a send may return before the message is received, and
// must not be relied on to wait for it (use [Ssend] for that); a buffer given to
// a call that starts with I belongs to the library until the request has been
// waited for; messages between two ranks with the same communicator arrive in
// the order in which they were sent.
package mpi
