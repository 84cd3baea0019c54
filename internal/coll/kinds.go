package coll

import (
	"fmt"
	"slices"
	"strings"
)

// The table of collective operations. A row has what differs between them; the checks of
// arguments, the shape of a call, the limits of shared memory, reports, simulations and
// commands follow from it.

// Kind is a collective operation. The comments define the contents of In and Out, for
// all algorithms, the validator and package mpi. Shape defines the blocks.
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

// Kinds is the number of kinds.
const Kinds = int(kinds)

// Finalize is the kind of the barrier in which a rank leaves the job: a [Barrier] that matches
// no call of a user, so that a rank that forgets a call does not leave by that of another.
const Finalize = kinds

// Content is what a buffer of a call has.
type Content uint8

const (
	Nothing   Content = iota
	Vector            // data of the same length on all ranks
	OwnBlock          // the rank's own block
	AllBlocks         // a block of every rank, or for every rank
)

// Variant is one of the API functions of a kind.
type Variant uint8

const (
	Regular       Variant = iota // equal blocks, or none
	Irregular                    // blocks of different lengths (MPI's v-variants)
	Layouts                      // a layout for each block (MPI's w-variants)
	SameRegular                  // the first two, with one block for all destinations
	SameIrregular                //
)

// kindRow is a row of the table.
type kindRow struct {
	name      string      // in settings, benchmarks and commands
	call      string      // in reports; "": the name of the first function
	functions [][3]string // names of the API functions, by Variant and Form
	value     string      // the function for values of any type, if there is one
	in, out   Content
	from, to  bool // In, or Out, is used at the root only; from is also that of Bcast
	combines  bool // it is a reduction
	awaits    bool // every rank needs data of every other
	alike     bool // all ranks know all lengths
	near      bool // ranks communicate with their neighbors in a topology
	// The largest call, in bytes of the data or of a block, that ranks of one node make in
	// shared memory, if they have a core each, and if they share cores; negative: none.
	//
	// Beyond the first, copying in and out costs more than messages, which both sides transfer
	// in one copy. In T2 4.3.2 shared memory wins up to 32 KB for broadcast and 8 KB for
	// gather, on other machines. Where ranks share cores, a message costs a context switch to
	// the receiver; data in shared memory does not.
	segment, sharedCores int
	define               func(*meaning) // adds to the definition of a call (define.go)
}

const kib = 1 << 10

var table = [kinds + 1]*kindRow{
	Barrier: {name: "barrier", functions: names("Barrier"), awaits: true,
		define: func(*meaning) {}},
	Bcast: {name: "bcast", functions: names("Bcast"), value: "BcastValue", out: Vector, from: true,
		segment: 16 * kib, sharedCores: 256 * kib, define: (*meaning).bcast},
	Gather: {name: "gather", functions: names("Gather", "Gatherv"), value: "GatherValue", in: OwnBlock, out: AllBlocks, to: true,
		segment: 16 * kib, sharedCores: 64 * kib, define: (*meaning).gather},
	Scatter: {name: "scatter", functions: names("Scatter", "Scatterv"), value: "ScatterValue", in: AllBlocks, out: OwnBlock, from: true,
		segment: 16 * kib, sharedCores: 64 * kib, define: (*meaning).scatter},
	Allgather: {name: "allgather", functions: names("Allgather", "Allgatherv"), value: "AllgatherValue", in: OwnBlock, out: AllBlocks, awaits: true, alike: true,
		segment: 8 * kib, sharedCores: 64 * kib, define: (*meaning).gather},
	Alltoall: {name: "alltoall", functions: names("Alltoall", "Alltoallv", "Alltoallw"), in: AllBlocks, out: AllBlocks, awaits: true,
		segment: 16 * kib, sharedCores: 64 * kib, define: (*meaning).alltoall},
	Reduce: {name: "reduce", functions: names("Reduce"), value: "AllreduceValue", in: Vector, out: Vector, to: true, combines: true,
		segment: 16 * kib, sharedCores: 256 * kib, define: (*meaning).reduce},
	Allreduce: {name: "allreduce", functions: names("Allreduce"), value: "AllreduceValue", in: Vector, out: Vector, combines: true, awaits: true,
		segment: 16 * kib, sharedCores: 256 * kib, define: (*meaning).reduce},
	ReduceScatter: {name: "reduce-scatter", functions: names("ReduceScatterBlock", "ReduceScatter"), call: "ReduceScatter", in: AllBlocks, out: OwnBlock, combines: true, awaits: true, alike: true,
		segment: 16 * kib, sharedCores: 64 * kib, define: (*meaning).reduceScatter},
	Scan: {name: "scan", functions: names("Scan"), in: Vector, out: Vector, combines: true,
		segment: 16 * kib, sharedCores: 64 * kib, define: (*meaning).scan},
	Exscan: {name: "exscan", functions: names("Exscan"), in: Vector, out: Vector, combines: true,
		segment: 16 * kib, sharedCores: 64 * kib, define: (*meaning).exscan},
	Neighbors: {name: "neighbors", call: "a neighborhood collective", in: AllBlocks, out: AllBlocks, near: true,
		functions: names("NeighborAlltoall", "NeighborAlltoallv", "NeighborAlltoallw", "NeighborAllgather", "NeighborAllgatherv"),
		segment:   -1, sharedCores: -1, define: (*meaning).neighbors},
	Finalize: {name: "finalize", functions: names("Finalize")},
}

// rows lists all algorithms, family by family. Of two algorithms of a kind with the same
// cost the first is chosen.
var rows = pointers(
	barrierAlgorithms(), bcastAlgorithms(), gatherAlgorithms(), scatterAlgorithms(),
	allgatherAlgorithms(), alltoallAlgorithms(),
	reduceAlgorithms(), allreduceAlgorithms(), reduceScatterAlgorithms(), scanAlgorithms(),
	neighborsAlgorithms(), papAlgorithms(), papReduceAlgorithms(),
	nodesSpreadAlgorithms(), nodesReduceAlgorithms(), nodesColumnsAlgorithms(), nodesGatherAlgorithms(),
	nodesAllgatherAlgorithms(), nodesAlltoallAlgorithms(), nodesAlltoallColumnsAlgorithms())

// names returns the names of functions in all forms.
func names(functions ...string) (all [][3]string) {
	for _, f := range functions {
		all = append(all, [3]string{Blocking: f, Started: "I" + strings.ToLower(f[:1]) + f[1:], Prepared: f + "Init"})
	}
	return all
}

// row accepts any value: a kind read from shared memory may be invalid.
func (k Kind) row() *kindRow {
	if k > kinds {
		return &kindRow{name: fmt.Sprintf("kind %d", uint8(k)), call: fmt.Sprintf("collective kind %d", uint8(k))}
	}
	return table[k]
}

func (k Kind) String() string { return k.row().name }

// CallName returns the name of a kind in reports: that of its API function.
func (k Kind) CallName() string {
	r := k.row()
	if r.call == "" {
		return r.functions[Regular][Blocking]
	}
	return r.call
}

// Function returns the name of an API function.
func (k Kind) Function(v Variant, f Form) string { return table[k].functions[v][f] }

// Functions returns the names of all API functions of collectives, by Form.
func Functions() (all [][3]string) {
	for k := range kinds {
		all = append(all, table[k].functions...)
	}
	return all
}

// ValueFunction returns the name of the function for values of any type, or "".
func (k Kind) ValueFunction() string { return table[k].value }

// Input and Out return what the buffers of a call have.
func (k Kind) Input() Content  { return table[k].in }
func (k Kind) Output() Content { return table[k].out }

// Vector reports whether a call is on data of the same length on all ranks, not on blocks.
func (k Kind) Vector() bool { return table[k].out == Vector }

// Rooted reports whether a kind has a root, FromRoot whether all data is the root's.
func (k Kind) Rooted() bool   { return table[k].from || table[k].to }
func (k Kind) FromRoot() bool { return table[k].from }

// Combines reports whether a kind is a reduction.
func (k Kind) Combines() bool { return table[k].combines }

// AwaitsAll reports whether every rank needs data of every other, so that no rank can
// leave before the last has arrived.
func (k Kind) AwaitsAll() bool { return table[k].awaits }

// Near reports whether the blocks are those of neighbors in a topology.
func (k Kind) Near() bool { return table[k].near }

// BetweenGroups reports whether a kind is defined on intercommunicators.
func (k Kind) BetweenGroups() bool { return k.Rooted() || table[k].awaits }

// ParseKind returns the kind of a name.
func ParseKind(name string) (Kind, error) {
	var all []string
	for k := range kinds {
		if table[k].name == name {
			return k, nil
		}
		all = append(all, table[k].name)
	}
	return 0, fmt.Errorf("unknown collective %q; want one of %v", name, all)
}

// KindOfFunction returns the kind and the form of an API function.
func KindOfFunction(name string) (k Kind, f Form, ok bool) {
	for k := range kinds + 1 {
		for _, forms := range table[k].functions {
			if i := slices.Index(forms[:], name); i >= 0 {
				return k, Form(i), true
			}
		}
	}
	return 0, 0, false
}

// EqualBlocks returns the shape of a call whose blocks, or data, have the given number of
// bytes; if that is a multiple of eight, data is split between elements of eight bytes. The
// neighbors of a rank are those of a ring.
func EqualBlocks(kind Kind, rank, size, root, bytes int) Shape {
	s := Shape{Kind: kind, Rank: rank, Size: size, Root: root, Elem: 1, Commutes: true}
	if bytes%8 == 0 {
		s.Elem = 8
	}
	s.SetBlocks(bytes, Blocks{Each: bytes}, Blocks{Each: bytes})
	if table[kind].near {
		s.Sources = []int{(rank + size - 1) % size, (rank + 1) % size}
		s.Dests = []int{(rank + 1) % size, (rank + size - 1) % size}
	}
	return s
}

// SetBlocks sets those of the lengths that the kind of a call has.
func (s *Shape) SetBlocks(bytes int, send, recv Blocks) {
	r := table[s.Kind]
	if r.out == Vector {
		s.Bytes = bytes
	}
	if r.in == AllBlocks {
		s.Send = send
	}
	if r.out == AllBlocks {
		s.Recv = recv
	}
}
