package inspect

import (
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/internal/hook"
)

// CollectiveChoice is an algorithm for a collective, its parameters and its
// estimated cost.
type CollectiveChoice struct {
	Algorithm string
	Params    map[string]int
	Seconds   float64
}

// CollectivePlan is the algorithm selected for a collective call.
type CollectivePlan struct {
	CollectiveChoice
	// Reason is why this algorithm was selected.
	Reason string
	// Others are the other algorithms that can serve the call, by increasing
	// cost.
	Others []CollectiveChoice
	// Startup is the estimated cost of a message in seconds and PerByte that
	// of each byte of it. Copy and Reduce are the cost of a byte that a rank
	// copies or combines.
	Startup, PerByte, Copy, Reduce float64
	// Nodes is the number of hosts that the ranks run on, and Rails the number
	// of rails between them; one if there is one host.
	Nodes, Rails int
	// Forms are those of blocking calls in the shared memory of a host, which
	// are used instead of the algorithm, the first one first.
	Forms []HostForm
}

// HostForm is a form of a collective in the shared memory of a host.
type HostForm struct {
	Name  string
	Limit int    // the largest call that uses it, in bytes; negative: none does
	Why   string // the reason, if none does
}

// ExplainCollective returns the algorithm that serves a call of a collective on
// c. The collective has one of the names of [mpi.Config.Collective]. bytes is
// the size of the data, or of one block where each rank has its own; all blocks
// are equal.
//
// If ranks is positive, the plan is for that number of ranks, which need not
// exist, at the same distance from each other as those of c.
func ExplainCollective(c *mpi.Comm, collective string, bytes, ranks int) (*CollectivePlan, error) {
	x, err := hook.Get().Collective(c, collective, bytes, ranks)
	if err != nil {
		return nil, err
	}
	p := &CollectivePlan{CollectiveChoice: CollectiveChoice(x.Choice), Reason: x.Reason,
		Startup: x.Startup, PerByte: x.PerByte, Copy: x.Copy, Reduce: x.Reduce,
		Nodes: x.Nodes, Rails: x.Rails}
	for _, f := range x.Forms {
		p.Forms = append(p.Forms, HostForm(f))
	}
	for _, o := range x.Others {
		p.Others = append(p.Others, CollectiveChoice(o))
	}
	return p, nil
}

// NodeSegment returns the size in bytes of the memory that the ranks of c share
// for blocking collectives. If it is 0, reason says why: the ranks have not made
// enough calls yet, or they cannot share memory.
func NodeSegment(c *mpi.Comm) (bytes int, reason string) { return hook.Get().NodeSegment(c) }
