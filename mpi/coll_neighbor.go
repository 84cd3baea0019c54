package mpi

// Neighborhood collectives (MPI-4.1 sections 8.6 to 8.8): every rank of a topology
// exchanges data with its neighbors only. All of them use one kind of schedule, in which a
// rank has a block for each destination and one from each source. The topology adds which
// ranks these are and, on grids, how blocks are paired (neighborBlocks).

import "github.com/muster-mpi/muster/internal/coll"

// NeighborAllgather sends in to all destinations of the calling rank and gathers the
// blocks of its sources: block i of out is from source i. All ranks send the same number
// of elements. Blocks whose source is ProcNull, at the edge of a grid, are not changed.
func NeighborAllgather[T Elem](t Topology, in, out []T) error {
	return neighborAllgatherArgs(t, in, out).call()
}

// IneighborAllgather starts a [NeighborAllgather].
func IneighborAllgather[T Elem](t Topology, in, out []T) Request {
	return neighborAllgatherArgs(t, in, out).start()
}

// NeighborAllgatherInit prepares a [NeighborAllgather].
func NeighborAllgatherInit[T Elem](t Topology, in, out []T) *Persistent {
	return neighborAllgatherArgs(t, in, out).prepare()
}

func neighborAllgatherArgs[T Elem](t Topology, in, out []T) collArgs[T] {
	return collArgs[T]{c: t.neighbors().c, near: t.neighbors(), kind: coll.Neighbors, variant: coll.SameRegular, in: in, out: out}
}

// NeighborAllgatherv is [NeighborAllgather] with blocks of different lengths: source i
// sends counts[i] elements, which are stored from element displs[i] of out on. If displs
// is nil, the blocks follow one another.
func NeighborAllgatherv[T Elem](t Topology, in, out []T, counts, displs []int) error {
	return neighborAllgathervArgs(t, in, out, counts, displs).call()
}

// IneighborAllgatherv starts a [NeighborAllgatherv]. It does not retain counts and
// displs.
func IneighborAllgatherv[T Elem](t Topology, in, out []T, counts, displs []int) Request {
	return neighborAllgathervArgs(t, in, out, counts, displs).start()
}

// NeighborAllgathervInit prepares a [NeighborAllgatherv]. It does not retain counts and
// displs.
func NeighborAllgathervInit[T Elem](t Topology, in, out []T, counts, displs []int) *Persistent {
	return neighborAllgathervArgs(t, in, out, counts, displs).prepare()
}

func neighborAllgathervArgs[T Elem](t Topology, in, out []T, counts, displs []int) collArgs[T] {
	return collArgs[T]{c: t.neighbors().c, near: t.neighbors(), kind: coll.Neighbors, variant: coll.SameIrregular, in: in, out: out, recvCounts: counts, recvDispls: displs}
}

// NeighborAlltoall sends block i of in to destination i of the calling rank and receives
// block j of out from its source j. On a grid, a block sent in the negative direction of
// a dimension arrives as the block from the positive direction, and vice versa, also if
// both neighbors are the same rank. Blocks whose source is ProcNull are not changed.
func NeighborAlltoall[T Elem](t Topology, in, out []T) error {
	return neighborAlltoallArgs(t, in, out).call()
}

// IneighborAlltoall starts a [NeighborAlltoall].
func IneighborAlltoall[T Elem](t Topology, in, out []T) Request {
	return neighborAlltoallArgs(t, in, out).start()
}

// NeighborAlltoallInit prepares a [NeighborAlltoall].
func NeighborAlltoallInit[T Elem](t Topology, in, out []T) *Persistent {
	return neighborAlltoallArgs(t, in, out).prepare()
}

func neighborAlltoallArgs[T Elem](t Topology, in, out []T) collArgs[T] {
	return collArgs[T]{c: t.neighbors().c, near: t.neighbors(), kind: coll.Neighbors, in: in, out: out}
}

// NeighborAlltoallv is [NeighborAlltoall] with blocks of different lengths. It sends to
// destination i the sendCounts[i] elements from element sendDispls[i] of in on, and
// stores the recvCounts[j] elements from source j from element recvDispls[j] of out on.
// If displacements are nil, the blocks follow one another.
func NeighborAlltoallv[T Elem](t Topology, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) error {
	return neighborAlltoallvArgs(t, in, sendCounts, sendDispls, out, recvCounts, recvDispls).call()
}

// IneighborAlltoallv starts a [NeighborAlltoallv]. It does not retain counts and
// displacements.
func IneighborAlltoallv[T Elem](t Topology, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) Request {
	return neighborAlltoallvArgs(t, in, sendCounts, sendDispls, out, recvCounts, recvDispls).start()
}

// NeighborAlltoallvInit prepares a [NeighborAlltoallv]. It does not retain counts and
// displacements.
func NeighborAlltoallvInit[T Elem](t Topology, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) *Persistent {
	return neighborAlltoallvArgs(t, in, sendCounts, sendDispls, out, recvCounts, recvDispls).prepare()
}

func neighborAlltoallvArgs[T Elem](t Topology, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) collArgs[T] {
	return collArgs[T]{c: t.neighbors().c, near: t.neighbors(), kind: coll.Neighbors, variant: coll.Irregular, in: in, sendCounts: sendCounts, sendDispls: sendDispls, out: out, recvCounts: recvCounts, recvDispls: recvDispls}
}

// NeighborAlltoallw is [NeighborAlltoall] with a layout for each block: it sends to
// destination i the elements of in that sends[i] selects, and stores those from source j
// in the elements of out that recvs[j] selects. A nil layout is an empty block. With it, a
// rank exchanges all borders of its part of a grid, rows and columns alike, in one call.
func NeighborAlltoallw[T Elem](t Topology, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) error {
	return neighborAlltoallwArgs(t, in, sends, out, recvs).call()
}

// IneighborAlltoallw starts a [NeighborAlltoallw]. out holds the result when the request
// is complete.
func IneighborAlltoallw[T Elem](t Topology, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) Request {
	return neighborAlltoallwArgs(t, in, sends, out, recvs).start()
}

// NeighborAlltoallwInit prepares a [NeighborAlltoallw].
func NeighborAlltoallwInit[T Elem](t Topology, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) *Persistent {
	return neighborAlltoallwArgs(t, in, sends, out, recvs).prepare()
}

func neighborAlltoallwArgs[T Elem](t Topology, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) collArgs[T] {
	return collArgs[T]{c: t.neighbors().c, near: t.neighbors(), kind: coll.Neighbors, variant: coll.Layouts, in: in, sends: sends, out: out, recvs: recvs}
}

// withNeighbors completes a call.
func (a *collArgs[T]) withNeighbors(k *collCall) (err error) {
	n, c := k.near, a.c
	if n.refused != nil {
		return c.refuse(ErrTopology, k.name, "%w", n.refused)
	}
	if a.variant == coll.Layouts {
		return a.withLayouts(k, len(n.dests), len(n.sources))
	}
	k.in, k.sendCounts, k.sendDispls = rawBytes(a.in), a.sendCounts, a.sendDispls
	k.out, k.recvCounts, k.recvDispls = rawBytes(a.out), a.recvCounts, a.recvDispls
	k.key.shared = a.variant == coll.SameRegular || a.variant == coll.SameIrregular
	switch {
	case k.key.shared:
		k.key.bytes = len(k.in)
	case k.key.irregular:
		err = c.checkParts(k.name, "in", "destination", len(n.dests), len(a.in), a.sendCounts, a.sendDispls)
	default:
		k.key.bytes, err = k.shareOf(c, "in", len(a.in), len(n.dests), "destinations")
	}
	switch sources := len(n.sources); {
	case err != nil:
		return err
	case k.key.irregular:
		return c.checkParts(k.name, "out", "source", sources, len(a.out), a.recvCounts, a.recvDispls)
	case k.key.shared && len(a.out) != sources*len(a.in):
		return c.refuse(ErrCount, k.name, "out has %d elements; %d sources with %d each need %d", len(a.out), sources, len(a.in), sources*len(a.in))
	case k.key.shared:
		k.key.recv = k.key.bytes
	default:
		k.key.recv, err = k.shareOf(c, "out", len(a.out), sources, "sources")
	}
	return err
}

// shareOf returns the length in bytes of the blocks of a slice with one for each of n
// neighbors.
func (k *collCall) shareOf(c *Comm, what string, length, n int, of string) (int, error) {
	if n == 0 && length == 0 {
		return 0, nil
	}
	if n == 0 || length%n != 0 {
		return 0, c.refuse(ErrCount, k.name, "%s has %d elements, which cannot be shared evenly among %d %s", what, length, n, of)
	}
	return length / n * k.key.elem, nil
}

// neighborBlocks sets the peers and blocks of a rank. ProcNull is left out, and the
// sources are in the order in which they are paired, so that the schedule can match the
// n-th block sent to a rank with the n-th block that it receives.
func (k *collCall) neighborBlocks(s *coll.Shape) {
	n := k.near
	if n == nil {
		return // inspect.ExplainCollective, without a call
	}
	whole := func(b *coll.Blocks, shared bool, i int) (off, length int) {
		if off, length = b.Block(i); shared {
			off = 0
		}
		return off, length
	}
	send, recv := s.Send, s.Recv
	s.Send, s.Recv = coll.Blocks{Irregular: true, Lens: []int{}}, coll.Blocks{Irregular: true, Lens: []int{}}
	add := func(ranks *[]int, b *coll.Blocks, rank, off, length int) {
		*ranks = append(*ranks, rank)
		b.Offs, b.Lens = append(b.Offs, off), append(b.Lens, length)
	}
	for i, to := range n.dests {
		if to != ProcNull {
			off, length := whole(&send, k.key.shared, i)
			add(&s.Dests, &s.Send, to, off, length)
		}
	}
	for i := range n.sources {
		if n.paired != nil {
			i = n.paired[i]
		}
		if from := n.sources[i]; from != ProcNull {
			off, length := whole(&recv, false, i)
			add(&s.Sources, &s.Recv, from, off, length)
		}
	}
}
