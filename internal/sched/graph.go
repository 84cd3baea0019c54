package sched

// A graph is what one rank does in one collective: sends, receives, copies and
// reductions, and which of them must wait for which. It is made once, by a
// Builder, and never changes; what changes while it runs is in Run. All offsets
// and lengths are bytes.

// Buf names one of the three memories that a collective works in.
type Buf uint8

const (
	In  Buf = iota // what the caller gives; never written
	Out            // what the caller gets; also read
	Tmp            // scratch, Graph.Tmp bytes, contents undefined at the start
)

func (b Buf) String() string { return [...]string{"in", "out", "tmp"}[b] }

// Span is a part of a buffer.
type Span struct {
	Buf      Buf
	Off, Len int
}

// At is the part of s that begins at off and is n long.
func (s Span) At(off, n int) Span { return Span{s.Buf, s.Off + off, n} }

// Kind is what an operation does.
type Kind uint8

const (
	Send   Kind = iota // Src to rank Peer
	Recv               // from rank Peer into Dst
	Copy               // Dst = Src
	Reduce             // Dst = Src ∘ Dst: Src is the left operand, as in MPI
)

func (k Kind) String() string { return [...]string{"send", "recv", "copy", "reduce"}[k] }

// Op is one operation. Sends to one peer are posted in the order in which they
// stand in the graph, receives from one peer too, so the n-th send from a to b
// meets the n-th receive of b from a, and a collective needs one tag. Messages
// that may overtake each other are in different streams: then the n-th of a
// stream meets the n-th of the same stream, and each stream needs a tag.
//
// A Send that is Unordered may go before or after others that are, as peers arrive
// (run_unordered.go).
type Op struct {
	Kind      Kind
	Unordered bool
	Stream    uint16
	Peer      int32 // of Send and Recv
	Step      int32 // the algorithm's own count of rounds, for pictures and costs; no meaning when run
	Src, Dst  Span  // of equal length; Send has no Dst, Recv no Src
}

// Graph is the work of one rank. Operations are numbered from 0; an operation
// depends only on ones with a smaller number.
type Graph struct {
	Rank, Size int
	Tmp        int // bytes of scratch
	Ports      int // loose sends that are under way at a time; 0: there are none
	Ops        []Op

	// after[first[i]:first[i+1]] are the operations that wait for operation i to
	// end; turn[i] is the next one with the same peer, stream and kind, which
	// waits for i to be posted, or -1. need[i] counts what i waits for, both together.
	first, after []int32
	turn         []int32
	need         []int32
}

// After gives the operations that wait for operation i to end.
func (g *Graph) After(i int) []int32 { return g.after[g.first[i]:g.first[i+1]] }

// Turn is the operation that may be posted once operation i is, or -1.
func (g *Graph) Turn(i int) int { return int(g.turn[i]) }

// Need is how many ends and turns operation i waits for.
func (g *Graph) Need(i int) int { return int(g.need[i]) }
