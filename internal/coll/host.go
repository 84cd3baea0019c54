package coll

import (
	"fmt"
	"math"
)

// Forms of collectives in memory that ranks of a host share. They belong to the table of
// algorithms, but have no graph, and their time is not estimated: up to its limits a form
// is faster than any messages. So they come before the choice by cost. A communicator
// chooses once, not for each call; the result is the largest call of each kind for each
// form. Only blocking calls use them: others must make progress while the rank is
// elsewhere.

// Placement is what all ranks of a communicator know about it and its hosts.
type Placement struct {
	Ranks          int
	Apart          int  // the first rank that is not on the host of rank 0; 0: there is none
	World          bool // it has all ranks of the job
	Board          bool // the launcher has made a board
	SharedCores    bool // there are more ranks than cores
	TwoGroups      bool // it is an intercommunicator
	NoSharedMemory bool // as configured
}

// Limits is the largest call of each kind, in bytes of the data or of a block; negative:
// none.
type Limits [kinds]int

// Named is the algorithm or form that the user has named for each kind; "": none.
type Named [kinds]string

// HostForm is a row of the table.
type HostForm struct {
	Name  string // Config.Collective names it, if CanBeNamed
	About string
	Ref   string
	// CanBeNamed means that Config.Collective can select the form, at any size.
	CanBeNamed bool
	// Cores and SharedCores are the limits for ranks that have a core each, and for ranks
	// that share cores.
	Cores, SharedCores Limits
	// excluded returns why ranks with a placement cannot use the form, or "".
	excluded func(p *Placement) string
}

// SegmentRanks is the largest number of ranks that share a segment: one round has a byte of
// each.
const SegmentRanks = 32 << 10

// The rows.
var (
	// Gate precedes the segment.
	Gate = &HostForm{
		Name:        "gate",
		About:       "Ranks count themselves in on the board, and the last one releases all. A message costs a context switch where ranks share cores, a counter none.",
		Ref:         "internal/pmi/gate.go",
		Cores:       only(Barrier, -1),
		SharedCores: only(Barrier, 0),
		excluded: func(p *Placement) string {
			switch {
			case !p.World:
				return "it has not all ranks of the job"
			case p.Apart > 0:
				return describeHosts(p)
			case !p.Board:
				return "the launcher has no board"
			case !p.SharedCores:
				return "each rank has a core"
			}
			return ""
		},
	}
	// Segment has the limits in the table of kinds.
	Segment = &HostForm{
		Name:        "segment",
		About:       "Each rank writes its data into its section of a segment, from which the others copy it: no message is sent.",
		Ref:         "T2 4.3, 4.4",
		CanBeNamed:  true,
		Cores:       segmentLimits(func(r *kindRow) int { return r.segment }),
		SharedCores: segmentLimits(func(r *kindRow) int { return r.sharedCores }),
		excluded: func(p *Placement) string {
			switch {
			case p.TwoGroups:
				return "it joins two groups"
			case p.Ranks == 1:
				return "it has one rank"
			case p.Ranks > SegmentRanks:
				return "it has too many ranks"
			case p.NoSharedMemory:
				return "MUSTER_NO_SHARED_MEMORY is set"
			case p.Apart > 0:
				return describeHosts(p)
			}
			return ""
		},
	}
	// NodePhases: its limit is that of the buffer that the ranks of a node share. The messages
	// of a node with more data are not copied on their way (rendezvous), while a segment is
	// copied in and out.
	NodePhases = &HostForm{
		Name:        "node-phases",
		About:       "The schedule of an algorithm that has such a form (InSegment), with its phases within a node in a buffer that the ranks of the node share.",
		Ref:         "T2 4.4; decision 064",
		Cores:       phaseLimits(),
		SharedCores: phaseLimits(),
		excluded: func(p *Placement) string {
			switch {
			case p.NoSharedMemory:
				return "MUSTER_NO_SHARED_MEMORY is set"
			case p.Apart == 0:
				return "all ranks are on one host"
			}
			return ""
		},
	}
)

// SharedLimit is the size of the largest buffer of NodePhases.
const SharedLimit = 1 << 20

// HostForms returns the rows, in the order in which they are chosen.
func HostForms() []*HostForm { return []*HostForm{Gate, Segment, NodePhases} }

// Supports reports whether the form exists for a kind.
func (f *HostForm) Supports(k Kind) bool { return f.Cores[k] >= 0 || f.SharedCores[k] >= 0 }

// Limits returns up to which size ranks with a placement use the form. If they never do, why
// is the reason. An algorithm that the user has named excludes a form that could be named
// instead.
func (f *HostForm) Limits(p *Placement, named *Named) (limits Limits, why string) {
	limits = f.Cores
	if p.SharedCores {
		limits = f.SharedCores
	}
	if why = f.excluded(p); why != "" {
		return only(Barrier, -1), why
	}
	for k := range limits {
		switch name := named[k]; {
		case !f.CanBeNamed || name == "":
		case name == f.Name:
			limits[k] = math.MaxInt
		default:
			limits[k] = -1
		}
	}
	if f == Segment && Gate.excluded(p) == "" {
		limits[Barrier] = -1
	}
	return limits, ""
}

// only returns the limits of a form that exists for one kind.
func only(kind Kind, limit int) (l Limits) {
	for k := range l {
		l[k] = -1
	}
	l[kind] = limit
	return l
}

// segmentLimits returns the limits in the table of kinds.
func segmentLimits(of func(*kindRow) int) (l Limits) {
	for k := range l {
		l[k] = of(table[k])
	}
	return l
}

// phaseLimits returns the limits of the kinds that have an algorithm with node phases in a
// segment.
func phaseLimits() Limits {
	l := only(Barrier, -1)
	for _, a := range rows {
		if a.InSegment != nil {
			l[a.Kind] = SharedLimit
		}
	}
	return l
}

func describeHosts(p *Placement) string {
	return fmt.Sprintf("ranks 0 and %d are on different hosts", p.Apart)
}
