package mpi

// The cores of a rank, in its trace: whether ranks of a host had to share them.

import (
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/internal/trace"
	"github.com/muster-mpi/muster/rdma/shm"
)

// tracedCores measures the CPU time of a rank.
type tracedCores struct {
	before    time.Duration // CPU time of the process when it joined
	inProcess bool          // other ranks share the process, so its CPU time is not that of a rank
}

func newTracedCores(inProcess bool) tracedCores {
	before, _ := cputime.Used()
	return tracedCores{before, inProcess}
}

// addTo adds the cores and the CPU time until now.
func (t *tracedCores) addTo(r *trace.Rank) {
	r.Cores, r.CPUs = shm.OnlineCores(), allowedCPUs()
	if now, ok := cputime.Used(); ok && !t.inProcess {
		r.CPUTime = int64(now - t.before)
	}
}
