package sched

// A graph holds the operations of one rank in one collective (sends, receives,
// copies and reductions) and their dependencies. A Builder makes it once, and it
// never changes; Run holds the state of an execution. All offsets and lengths are in
// bytes.
//
// Ranks may share a graph (share.go), and the operations of a long one may be generated
// while it runs (generate.go).

// Buf identifies one of the four buffers of a collective.
type Buf uint8

const (
	In     Buf = iota // the caller's input; never written
	Out               // the caller's output; also read
	Tmp               // scratch: Graph.Tmp bytes, initially undefined
	Shared            // the same for the ranks of a node: Graph.Shared bytes (Op.HandOver)
)

// Bufs is the number of buffers.
const Bufs = 4

func (b Buf) String() string { return [...]string{"in", "out", "tmp", "shared"}[b] }

// Span is a part of a buffer.
type Span struct {
	Buf      Buf
	Off, Len int
}

// At returns the n bytes of s that begin at off.
func (s Span) At(off, n int) Span { return Span{s.Buf, s.Off + off, n} }

// Kind is the kind of an operation.
type Kind uint8

const (
	Send   Kind = iota // Src to rank Peer
	Recv               // from rank Peer into Dst
	Copy               // Dst = Src
	Reduce             // Dst = Src ∘ Dst: Src is the left operand, as in MPI
)

func (k Kind) String() string { return [...]string{"send", "recv", "copy", "reduce"}[k] }

// Op is one operation. Sends to one peer are posted in graph order, and so are
// receives from one peer. The n-th send from a to b therefore matches the n-th
// receive of b from a, and a collective needs only one tag. Messages that may
// overtake each other use different streams: messages are matched in order within a
// stream, and each stream needs a tag of its own.
//
// An Unordered Send may be posted before or after other unordered sends, depending
// on which peers have arrived (run_unordered.go).
//
// A HandOver is a message between ranks of a node whose source and destination are the
// same span of Shared: it tells the peer that the bytes are there (the flags of T2 4.4,
// 5.5 and 6.4). A graph with them can be executed in two ways:
//
//	in a segment    the ranks of a node have one memory for Shared, and a hand-over
//	                is a message without data;
//	with messages   every rank has its own memory for Shared, and a hand-over is a
//	                message like any other.
//
// Validate proves both: no byte of Shared is written twice in a node, so the two differ
// only in who copies (validate_shared.go).
type Op struct {
	Kind      Kind
	Unordered bool
	HandOver  bool
	Stream    uint16
	Peer      int32 // of Send and Recv; see Graph.Peer
	Step      int32 // the algorithm's round, for pictures and costs; ignored by Run
	Src, Dst  Span  // of equal length; Send has no Dst, Recv has no Src
}

// data returns the bytes that a message sends or receives.
func (op *Op) data() Span {
	if op.Kind == Recv {
		return op.Dst
	}
	return op.Src
}

// Graph is the schedule of one rank. Operations are numbered from 0; an operation
// depends only on operations with smaller numbers.
type Graph struct {
	Rank, Size int // Rank is AnyRank if ranks share the graph
	Peers      Addressing
	Tmp        int // bytes of scratch
	Shared     int // bytes shared by the ranks of a node; the same for all of them
	Ports      int // unordered sends under way at a time; 0 if there are none
	Ops        []Op

	// after[first[i]:first[i+1]] are the operations that wait for operation i to
	// complete. nextPost[i] is the next operation with the same peer, stream and
	// kind, which waits for i to be posted, or -1. need[i] counts both kinds of
	// dependencies of operation i.
	first, after []int32
	nextPost     []int32
	need         []int32

	generator *Generator // makes the operations; nil: they are in Ops
}

// Successors returns the operations that wait for operation i to complete.
func (g *Graph) Successors(i int) []int32 { return g.after[g.first[i]:g.first[i+1]] }

// NextPost returns the operation that may be posted only after operation i has been
// posted, or -1.
func (g *Graph) NextPost(i int) int { return int(g.nextPost[i]) }

// Need returns the number of completions and posts that operation i waits for.
func (g *Graph) Need(i int) int { return int(g.need[i]) }
