package coll

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/sched"
)

// Kind is a collective operation. What In and Out hold is said here, for all
// algorithms, the validator and package mpi; blocks are those of Shape.
type Kind uint8

const (
	Barrier       Kind = iota // nothing
	Bcast                     // Out: the data, at the root before, everywhere after; no In
	Gather                    // In: own block; Out at the root: the block of every rank
	Scatter                   // In at the root: a block for every rank; Out: own block
	Allgather                 // In: own block; Out: the block of every rank
	Alltoall                  // In: a block for every rank; Out: a block from every rank
	Reduce                    // In: the data; Out at the root: the result
	Allreduce                 // In: the data; Out: the result
	ReduceScatter             // In: a block for every rank; Out: own block of the result
	Scan                      // In: the data; Out: the result over ranks 0 to own
	Exscan                    // the same over ranks 0 to own-1; Out of rank 0 is not written
	Neighbors                 // In: a block for every destination; Out: a block from every source
	kinds
)

var kindNames = [kinds]string{"barrier", "bcast", "gather", "scatter", "allgather", "alltoall",
	"reduce", "allreduce", "reduce-scatter", "scan", "exscan", "neighbors"}

// String also names what is no kind: one read from shared memory may be anything.
func (k Kind) String() string {
	if k >= kinds {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// ParseKind finds a kind by its name.
func ParseKind(name string) (Kind, error) {
	for k, n := range kindNames {
		if n == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("there is no collective %q; there are %v", name, kindNames[:])
}

// Blocks says where the parts of a buffer lie: n parts of Each bytes one after the
// other, or, if Lens is not nil, parts of their own length and offset (the v-forms
// of MPI). The forms whose blocks only the root knows (gatherv, scatterv) have Lens
// at the root only; elsewhere Each is the length of the rank's own block and
// Irregular is set.
type Blocks struct {
	Each       int
	Lens, Offs []int
	Irregular  bool // lengths differ between ranks: set on all ranks alike
}

// Of is the place of part i.
func (b *Blocks) Of(i int) (off, n int) {
	if b.Lens == nil {
		return i * b.Each, b.Each
	}
	return b.Offs[i], b.Lens[i]
}

// Shape is everything that an algorithm may look at, and that a schedule is kept
// under for the next call. All ranks of a call have the same Shape but for Rank,
// for the Blocks where said there, and for InPlace: a rank may be in place or not
// for itself, and the messages of an algorithm are the same either way.
type Shape struct {
	Kind     Kind
	Rank     int
	Size     int
	Root     int
	Elem     int  // bytes of an element: data may be cut between elements only; 0 counts as 1
	Commutes bool // the reduction may change the order of operands
	// InPlace: In is not there; the rank's input lies in Out, where MPI says
	// (gather, allgather: at the own block; scatter at the root: its own block stays
	// where it is, in In; reduce, allreduce, scan, exscan, alltoall: the whole;
	// reduce-scatter: all blocks, and the result ends at the beginning of Out).
	InPlace bool
	// Bytes is the length of the data of Bcast, Reduce, Allreduce, Scan, Exscan.
	Bytes int
	// Blocks of In (Scatter, Alltoall, ReduceScatter, Neighbors) and of Out
	// (Gather, Allgather, Alltoall, Neighbors). The own block of Gather's In has
	// the length that it has in the root's Out; that of Allgather likewise.
	Send, Recv Blocks
	// Sources and Dests are the neighbors of Neighbors, in their order.
	Sources, Dests []int
	// Nodes says which ranks share a node; nil: all are on one.
	Nodes *Topology
}

// Param is a number that an algorithm can be given, with the values worth trying.
type Param struct {
	Name   string
	Values []int // the first is the default
	About  string
}

// Needs says where an algorithm is not applicable.
type Needs struct {
	Commutes    bool // the reduction must commute
	PowerOfTwo  bool // of ranks: none of ours should need it
	Regular     bool // all blocks equal
	Even        bool // an even number of ranks
	MinRanks    int
	NotInPlace  bool
	WholeBlocks bool // at least one element for every rank
	Nodes       bool // ranks on several nodes
}

// Model is the device's cost in Hockney's form, in seconds, for choosing: a message
// of n bytes takes Startup + n·PerByte; a rank can drive Ports messages at a time;
// a reduction takes Reduce a byte, a local copy Copy a byte. A message between
// ranks of one node takes Near instead, if there are several nodes; Near zero
// counts as the same.
type Model struct {
	Startup, PerByte, Reduce, Copy float64
	Ports                          int
	// Starts is how many messages a rank can begin at the same time, where that is
	// more than Ports: their start-ups overlap, their bytes share the ports.
	Starts int
	// Eager is the longest message that goes at once. Longer ones ask first, which
	// takes as long as two more, or three where ranks take turns; 0: none does.
	Eager int
	// Stripe is the longest message that takes one port. Longer ones are cut and take
	// all of them; 0: none is.
	Stripe int
	// TimeSlices says that the ranks of a node take turns on its cores: the start-ups of
	// their messages to other nodes add up.
	TimeSlices bool
	Near       Near
}

// startup is the time of a message of n bytes without its bytes.
func (m *Model) startup(n float64) float64 {
	switch {
	case m.Eager == 0 || n <= float64(m.Eager):
		return m.Startup
	case m.TimeSlices:
		return 4 * m.Startup
	}
	return 3 * m.Startup
}

// starts is Starts, or Ports.
func (m *Model) starts() int { return max(m.Starts, m.Ports, 1) }

// Near is what a message inside a node costs.
type Near struct{ Startup, PerByte float64 }

// near is the model inside a node. Memory has one port: a rank copies one message
// at a time. Ranks that take turns find several messages when it is theirs.
func (m *Model) near() Model {
	inside := *m
	if m.Near != (Near{}) {
		inside.Startup, inside.PerByte, inside.Ports, inside.Starts, inside.Eager, inside.Stripe = m.Near.Startup, m.Near.PerByte, 1, 1, 0, 0
		if m.TimeSlices {
			inside.Starts = 4
		}
	}
	return inside
}

// Algorithm is a row of the table.
type Algorithm struct {
	Kind   Kind
	Name   string // as users write it: binomial, ring, bruck …
	Ref    string // where it comes from
	About  string // one sentence
	Needs  Needs
	Params []Param
	// Along says that ranks speak with their neighbors only, so that one message
	// leaves a node at a time if its ranks are neighbors.
	Along bool
	// ByName says that the choice by cost leaves it out: it must be asked for.
	ByName bool
	// Aware is the algorithm of the same kind that does the same with the ranks that
	// have arrived served first, if there is one. Its messages are the same, so each
	// rank may choose between the two for itself.
	Aware string
	// Instead is the algorithm of the same kind, with the same parameters, that a rule
	// which names this one means for calls that this one cannot do.
	Instead string
	// Cost estimates the time of the slowest rank. It must not depend on
	// Shape.Rank, nor on anything that ranks do not all know: every rank must
	// choose the same.
	Cost func(s *Shape, m *Model, params []int) float64
	// Build makes the graph of rank s.Rank; errors by b.Fail.
	Build func(b *sched.Builder, s *Shape, params []int)
}
