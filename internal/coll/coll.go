package coll

import "github.com/muster-mpi/muster/internal/sched"

// Blocks describes the blocks of a buffer: consecutive blocks of Each bytes, or, if
// Lens is not nil, blocks of individual lengths and offsets (MPI's v-variants).
// Gatherv and scatterv have Lens only at the root; on other ranks Each is the length
// of the rank's own block and Irregular is set.
type Blocks struct {
	Each       int
	Lens, Offs []int
	Irregular  bool // lengths differ between ranks; equal on all ranks
}

// Block returns the offset and the length of block i.
func (b *Blocks) Block(i int) (off, n int) {
	if b.Lens == nil {
		return i * b.Each, b.Each
	}
	return b.Offs[i], b.Lens[i]
}

// Shape describes a call. It is the only input of an algorithm, and the key under
// which a schedule is cached. All ranks of a call have the same Shape, except for
// Rank, for Blocks as documented there, and for InPlace: each rank may be in place or
// not, and the messages of an algorithm are the same either way.
type Shape struct {
	Kind     Kind
	Rank     int
	Size     int
	Root     int
	Elem     int  // element size in bytes, 0 means 1; data may be split only between elements
	Commutes bool // the reduction may change the order of operands
	// InPlace means that there is no In: the rank's input is in Out, where MPI defines
	// it. For gather and allgather it is the rank's own block; for reduce, allreduce,
	// scan, exscan and alltoall all of Out; for reduce-scatter all blocks, and the
	// result is at the beginning of Out. For scatter, the root's own block stays in In.
	InPlace bool
	// Bytes is the length of the data of Bcast, Reduce, Allreduce, Scan, Exscan.
	Bytes int
	// Blocks of In (Scatter, Alltoall, ReduceScatter, Neighbors) and of Out
	// (Gather, Allgather, Alltoall, Neighbors). The rank's own block in Gather's and
	// Allgather's In has the same length as in Out.
	Send, Recv Blocks
	// Carried has, for an Alltoall with blocks of different lengths, those of the blocks
	// that this rank may have to hand on: for each rank of CarriedFrom a block for every
	// rank of this node. It is nil on all ranks or on none.
	Carried []Blocks
	// Sources and Dests are the neighbors of Neighbors, in order.
	Sources, Dests []int
	// Nodes is the topology; nil if all ranks share one node.
	Nodes *Topology
}

// Param is a parameter of an algorithm, with the values worth trying.
type Param struct {
	Name   string
	Values []int // the first is the default
	About  string
}

// Needs lists the requirements of an algorithm.
type Needs struct {
	Commutes    bool // the reduction must commute
	PowerOfTwo  bool // the number of ranks; none of ours should need it
	Regular     bool // all blocks have the same length
	Lengths     bool // the same, or Shape.Carried is set
	Even        bool // an even number of ranks
	MinRanks    int
	NotInPlace  bool
	WholeBlocks bool // at least one element for every rank
	Nodes       bool // ranks on several nodes
}

// Model is the cost model of a device in Hockney's form, in seconds: a message of n
// bytes takes Startup + n·PerByte; a rank can transfer Ports messages at a time; a
// reduction takes Reduce per byte, a local copy Copy per byte. If there are several
// nodes, a message within a node takes Near instead; a zero Near means no difference.
type Model struct {
	Startup, PerByte, Reduce, Copy float64
	Ports                          int
	// Starts is the number of messages that a rank can start at the same time, if that
	// is more than Ports: their start-ups overlap, their bytes share the ports.
	Starts int
	// Eager is the longest message that is sent eagerly. A longer one uses rendezvous,
	// which costs two more start-ups, or three with TimeSlices. 0: no rendezvous.
	Eager int
	// Stripe is the longest message that uses one port. A longer one is striped over
	// all of them. 0: no striping.
	Stripe int
	// Cable is the time of a byte on one of the cables of a node, which all ranks of the
	// node share. PerByte is then the time that a rank spends on a byte. 0: PerByte is the
	// time on the cable.
	Cable float64
	// Cables is the number of cables of a node if that is more than Ports: each rank uses
	// one of them (decision 044).
	Cables int
	// TimeSlices means that the ranks of a node share its cores: the start-ups of their
	// messages to other nodes add up.
	TimeSlices bool
	// Message is the time of the processor for sending and receiving a message between
	// nodes, which does not overlap with that of other messages. It matters with
	// TimeSlices.
	Message float64
	Near    Near

	senders int     // ranks of a node that send at the same time, if several share Cable
	alone   float64 // Cable of one sender, if several share it
	rooted  bool    // one rank only sends or only receives
	// hop is the model of a single message along consecutive ranks, if the others of a
	// node are idle; nil if the model is that of all messages.
	hop *Model
}

// startup returns the start-up time of a message of n bytes.
func (m *Model) startup(n float64) float64 {
	switch {
	case m.eager(n):
		return m.Startup
	case m.TimeSlices:
		return 4 * m.Startup
	}
	return 3 * m.Startup
}

// eager reports whether a message of n bytes is sent without a rendezvous.
func (m *Model) eager(n float64) bool { return m.Eager == 0 || n <= float64(m.Eager) }

// cables returns the number of cables of a node.
func (m *Model) cables() int { return max(m.Cables, m.Ports, 1) }

// splitAmong returns the model of messages of n bytes if several ranks of a node each send a
// part of them. With time slices a cable is idle while its only sender waits for a core,
// unless the messages are short.
func (m *Model) splitAmong(ranks int, n float64) *Model {
	parts := *m
	parts.senders = ranks
	if m.TimeSlices && ranks <= m.cables() && n*m.Cable > 2*m.Startup {
		parts.Cable *= 1.4 // measured with allgather of 8 and 64 KB on 16 ranks that share two cores
	}
	return &parts
}

// starts returns the number of messages that can start at the same time.
func (m *Model) starts() int { return max(m.Starts, m.Ports, 1) }

// Near is the cost of a message within a node.
type Near struct{ Startup, PerByte float64 }

// inNode returns the model within a node. Memory has one port: a rank copies one message
// at a time. A rank with TimeSlices finds several messages when it runs.
func (m *Model) inNode() Model {
	inside := *m
	if m.Near != (Near{}) {
		inside.Startup, inside.PerByte, inside.Ports, inside.Cables, inside.Starts, inside.Eager, inside.Stripe, inside.Cable, inside.Message = m.Near.Startup, m.Near.PerByte, 1, 1, 1, 0, 0, 0, 0
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
	Ref    string // its source
	About  string // one sentence
	Needs  Needs
	Params []Param
	// Along means that ranks communicate only with their neighbors, so that one message
	// at a time leaves a node with consecutive ranks.
	Along bool
	// Leaders means that one rank of each node communicates with other nodes, if there are
	// several: it does not share its cables.
	Leaders bool
	// Far estimates the share of the bytes that leaves a node, for algorithms that are
	// not node-aware. nil: that of an algorithm in which a rank sends to all alike.
	Far func(s *Shape, params []int) float64
	// Rooted means that all messages are sent by the root, or to it.
	Rooted bool
	// ByName excludes the algorithm from the choice by cost: it must be named.
	ByName bool
	// Aware names the arrival-aware form of the algorithm, which serves arrived ranks
	// first, if there is one. Its messages are the same, so each rank may choose
	// between the two on its own.
	Aware string
	// Instead names the algorithm of the same kind, with the same parameters, that a
	// rule for this one uses for calls to which this one is not applicable.
	Instead string
	// InSegment builds the graph with the node phases in the buffer that the ranks of a
	// node share, if there is such a form. Its messages between nodes are the same as
	// those of Build, so each node may choose between the two on its own.
	InSegment func(b *sched.Builder, s *Shape, params []int)
	// Cost estimates the time of the slowest rank. It must not depend on Shape.Rank or
	// on anything that not all ranks know: every rank must choose the same algorithm.
	Cost func(s *Shape, m *Model, params []int) float64
	// Build builds the graph of rank s.Rank. It reports errors with b.Fail.
	Build func(b *sched.Builder, s *Shape, params []int)
	// Generate builds the same graph with generated operations, for a window, if there is
	// such a form (generate.go).
	Generate func(b *sched.Builder, s *Shape, params []int, window int)
	// Ops estimates the operations of the rank that has most, with the same restrictions as
	// Cost. nil: they are generated, or their number depends on the logarithm of the ranks.
	Ops func(s *Shape, params []int) int
	// Plan estimates the time of Build on the slowest rank, with the same restrictions as
	// Cost. nil: it is about that of a call or less.
	Plan func(s *Shape, params []int) float64
}

// plannedCalls is the number of calls among which the cost of a plan is divided. A plan is
// kept, so a program that makes fewer calls of a shape does not spend much time in them.
const plannedCalls = 100
