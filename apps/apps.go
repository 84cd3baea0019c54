package apps

import (
	"github.com/muster-mpi/muster/apps/bt"
	"github.com/muster-mpi/muster/apps/cg"
	"github.com/muster-mpi/muster/apps/ep"
	"github.com/muster-mpi/muster/apps/ft"
	"github.com/muster-mpi/muster/apps/heat"
	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/apps/is"
	"github.com/muster-mpi/muster/apps/lu"
	"github.com/muster-mpi/muster/apps/mg"
	"github.com/muster-mpi/muster/apps/nbody"
	"github.com/muster-mpi/muster/apps/radix"
	"github.com/muster-mpi/muster/apps/sp"
	"github.com/muster-mpi/muster/apps/train"
	"github.com/muster-mpi/muster/mpi"
)

// Result is what an application reports: its size, its speed, and whether its output is
// correct. Its method Print writes the block that users of the NAS Parallel Benchmarks
// know.
type Result = npb.Result

// App is an application. All ranks of c call Run together and get the same result.
type App struct {
	Name    string
	Summary string // what it computes, in one line
	Classes string // problem sizes, one letter each, smallest first
	Run     func(c *mpi.Comm, class byte) (Result, error)
	// RunSaved is Run with checkpoints, for mpi.Recover; nil if the application has none.
	RunSaved func(c *mpi.Comm, class byte, saving Saving) (Result, error)
}

// Saving is how often an application makes checkpoints.
type Saving = npb.Saving

// All returns the applications in the order in which they are listed.
func All() []App {
	return []App{
		{"bt", "NAS BT: flow equations by alternating directions; long messages, overlapped", bt.Classes, bt.Run, nil},
		{"cg", "NAS CG: eigenvalue of a sparse matrix; small messages and reductions", cg.Classes, cg.Run, cg.RunSaved},
		{"ep", "NAS EP: pairs of Gaussian random numbers; almost no communication", ep.Classes, ep.Run, nil},
		{"ft", "NAS FT: three-dimensional Fourier transforms; Alltoall of the whole grid", ft.Classes, ft.Run, nil},
		{"heat", "heat equation by conjugate gradients; edges of rectangles, small reductions", heat.Classes, heat.Run, heat.RunSaved},
		{"is", "NAS IS: ranks of integer keys; Alltoallv of long messages", is.Classes, is.Run, nil},
		{"lu", "NAS LU: flow equations by relaxation; a wavefront of small messages", lu.Classes, lu.Run, nil},
		{"mg", "NAS MG: Poisson equation by multigrid; faces of boxes, long and short messages", mg.Classes, mg.Run, nil},
		{"nbody", "Barnes–Hut N-body simulation; small Allgathers, irregular messages", nbody.Classes, nbody.Run, nil},
		{"radix", "radix sort of integers; Allgather of counts, messages between all ranks", radix.Classes, radix.Run, nil},
		{"sp", "NAS SP: flow equations by alternating directions; shorter systems than BT", sp.Classes, sp.Run, nil},
		{"train", "training of a neural network; Iallreduce of gradients in the backward pass", train.Classes, train.Run, nil},
	}
}
