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
	k, err := neighborAllgatherCall(t, "NeighborAllgather", in, out)
	if err != nil {
		return err
	}
	return t.neighbors().c.blocking(&k)
}

// IneighborAllgather starts a [NeighborAllgather].
func IneighborAllgather[T Elem](t Topology, in, out []T) Request {
	k, err := neighborAllgatherCall(t, "IneighborAllgather", in, out)
	return t.neighbors().c.started(&k, err)
}

// NeighborAllgatherInit prepares a [NeighborAllgather].
func NeighborAllgatherInit[T Elem](t Topology, in, out []T) *Persistent {
	k, err := neighborAllgatherCall(t, "NeighborAllgatherInit", in, out)
	return t.neighbors().c.prepared(&k, err)
}

func neighborAllgatherCall[T Elem](t Topology, name string, in, out []T) (collCall, error) {
	k, err := neighborCall[T](t, name)
	if err != nil {
		return k, err
	}
	k.key.shared, k.in, k.key.bytes = true, rawBytes(in), len(in)*k.key.elem
	if n := len(k.near.sources); len(out) != n*len(in) {
		return k, k.near.c.refuse(ErrCount, name, "out has %d elements; %d sources with %d each need %d", len(out), n, len(in), n*len(in))
	}
	k.out, k.key.recv = rawBytes(out), k.key.bytes
	return k, nil
}

// NeighborAllgatherv is [NeighborAllgather] with blocks of different lengths: source i
// sends counts[i] elements, which are stored from element displs[i] of out on. If displs
// is nil, the blocks follow one another.
func NeighborAllgatherv[T Elem](t Topology, in, out []T, counts, displs []int) error {
	k, err := neighborAllgathervCall(t, "NeighborAllgatherv", in, out, counts, displs)
	if err != nil {
		return err
	}
	return t.neighbors().c.blocking(&k)
}

// IneighborAllgatherv starts a [NeighborAllgatherv]. It does not retain counts and
// displs.
func IneighborAllgatherv[T Elem](t Topology, in, out []T, counts, displs []int) Request {
	k, err := neighborAllgathervCall(t, "IneighborAllgatherv", in, out, counts, displs)
	return t.neighbors().c.started(&k, err)
}

// NeighborAllgathervInit prepares a [NeighborAllgatherv]. It does not retain counts and
// displs.
func NeighborAllgathervInit[T Elem](t Topology, in, out []T, counts, displs []int) *Persistent {
	k, err := neighborAllgathervCall(t, "NeighborAllgathervInit", in, out, counts, displs)
	return t.neighbors().c.prepared(&k, err)
}

func neighborAllgathervCall[T Elem](t Topology, name string, in, out []T, counts, displs []int) (collCall, error) {
	k, err := neighborCall[T](t, name)
	if err != nil {
		return k, err
	}
	k.key.irregular, k.key.shared, k.in, k.key.bytes = true, true, rawBytes(in), len(in)*k.key.elem
	k.out, k.recvCounts, k.recvDispls = rawBytes(out), counts, displs
	return k, k.near.c.checkParts(name, "out", "source", len(k.near.sources), len(out), counts, displs)
}

// NeighborAlltoall sends block i of in to destination i of the calling rank and receives
// block j of out from its source j. On a grid, a block sent in the negative direction of
// a dimension arrives as the block from the positive direction, and vice versa, also if
// both neighbors are the same rank. Blocks whose source is ProcNull are not changed.
func NeighborAlltoall[T Elem](t Topology, in, out []T) error {
	k, err := neighborAlltoallCall(t, "NeighborAlltoall", in, out)
	if err != nil {
		return err
	}
	return t.neighbors().c.blocking(&k)
}

// IneighborAlltoall starts a [NeighborAlltoall].
func IneighborAlltoall[T Elem](t Topology, in, out []T) Request {
	k, err := neighborAlltoallCall(t, "IneighborAlltoall", in, out)
	return t.neighbors().c.started(&k, err)
}

// NeighborAlltoallInit prepares a [NeighborAlltoall].
func NeighborAlltoallInit[T Elem](t Topology, in, out []T) *Persistent {
	k, err := neighborAlltoallCall(t, "NeighborAlltoallInit", in, out)
	return t.neighbors().c.prepared(&k, err)
}

func neighborAlltoallCall[T Elem](t Topology, name string, in, out []T) (collCall, error) {
	k, err := neighborCall[T](t, name)
	if err != nil {
		return k, err
	}
	share := func(what string, buf []T, ranks []int, of string) (int, error) {
		n := len(ranks)
		if n == 0 && len(buf) == 0 {
			return 0, nil
		}
		if n == 0 || len(buf)%n != 0 {
			return 0, k.near.c.refuse(ErrCount, name, "%s has %d elements, which cannot be shared evenly among %d %s", what, len(buf), n, of)
		}
		return len(buf) / n * k.key.elem, nil
	}
	if k.key.bytes, err = share("in", in, k.near.dests, "destinations"); err != nil {
		return k, err
	}
	if k.key.recv, err = share("out", out, k.near.sources, "sources"); err != nil {
		return k, err
	}
	k.in, k.out = rawBytes(in), rawBytes(out)
	return k, nil
}

// NeighborAlltoallv is [NeighborAlltoall] with blocks of different lengths. It sends to
// destination i the sendCounts[i] elements from element sendDispls[i] of in on, and
// stores the recvCounts[j] elements from source j from element recvDispls[j] of out on.
// If displacements are nil, the blocks follow one another.
func NeighborAlltoallv[T Elem](t Topology, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) error {
	k, err := neighborAlltoallvCall(t, "NeighborAlltoallv", in, sendCounts, sendDispls, out, recvCounts, recvDispls)
	if err != nil {
		return err
	}
	return t.neighbors().c.blocking(&k)
}

// IneighborAlltoallv starts a [NeighborAlltoallv]. It does not retain counts and
// displacements.
func IneighborAlltoallv[T Elem](t Topology, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) Request {
	k, err := neighborAlltoallvCall(t, "IneighborAlltoallv", in, sendCounts, sendDispls, out, recvCounts, recvDispls)
	return t.neighbors().c.started(&k, err)
}

// NeighborAlltoallvInit prepares a [NeighborAlltoallv]. It does not retain counts and
// displacements.
func NeighborAlltoallvInit[T Elem](t Topology, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) *Persistent {
	k, err := neighborAlltoallvCall(t, "NeighborAlltoallvInit", in, sendCounts, sendDispls, out, recvCounts, recvDispls)
	return t.neighbors().c.prepared(&k, err)
}

func neighborAlltoallvCall[T Elem](t Topology, name string, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) (collCall, error) {
	k, err := neighborCall[T](t, name)
	if err != nil {
		return k, err
	}
	k.key.irregular = true
	k.in, k.sendCounts, k.sendDispls = rawBytes(in), sendCounts, sendDispls
	k.out, k.recvCounts, k.recvDispls = rawBytes(out), recvCounts, recvDispls
	c := k.near.c
	if err := c.checkParts(name, "in", "destination", len(k.near.dests), len(in), sendCounts, sendDispls); err != nil {
		return k, err
	}
	return k, c.checkParts(name, "out", "source", len(k.near.sources), len(out), recvCounts, recvDispls)
}

// NeighborAlltoallw is [NeighborAlltoall] with a layout for each block: it sends to
// destination i the elements of in that sends[i] selects, and stores those from source j
// in the elements of out that recvs[j] selects. A nil layout is an empty block. With it, a
// rank exchanges all borders of its part of a grid, rows and columns alike, in one call.
func NeighborAlltoallw[T Elem](t Topology, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) error {
	k, w, err := neighborAlltoallwCall(t, "NeighborAlltoallw", in, sends, out, recvs)
	if err != nil {
		return err
	}
	w.pack()
	if err := t.neighbors().c.blocking(&k); err != nil {
		return err
	}
	w.unpack(0)
	return nil
}

// IneighborAlltoallw starts a [NeighborAlltoallw]. out holds the result when the request
// is complete.
func IneighborAlltoallw[T Elem](t Topology, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) Request {
	k, w, err := neighborAlltoallwCall(t, "IneighborAlltoallw", in, sends, out, recvs)
	return t.neighbors().c.startedPacked(&k, w, err)
}

// NeighborAlltoallwInit prepares a [NeighborAlltoallw].
func NeighborAlltoallwInit[T Elem](t Topology, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) *Persistent {
	k, w, err := neighborAlltoallwCall(t, "NeighborAlltoallwInit", in, sends, out, recvs)
	return t.neighbors().c.preparedPacked(&k, w, err)
}

func neighborAlltoallwCall[T Elem](t Topology, name string, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) (collCall, *packedExchange, error) {
	k, err := neighborCall[T](t, name)
	if err != nil {
		return k, nil, err
	}
	k.key.irregular, k.key.elem = true, 1
	w := &packedExchange{}
	c := k.near.c
	if w.sends, k.sendCounts, w.in, err = blockViews(c, name, "in", len(k.near.dests), in, sends); err != nil {
		return k, nil, err
	}
	if w.recvs, k.recvCounts, w.out, err = blockViews(c, name, "out", len(k.near.sources), out, recvs); err != nil {
		return k, nil, err
	}
	k.in, k.out = w.in, w.out
	return k, w, nil
}

// neighborCall begins a call.
func neighborCall[T Elem](t Topology, name string) (collCall, error) {
	k := collCall{name: name, near: t.neighbors(), key: planKey{kind: coll.Neighbors, elem: sizeOf[T]()}}
	c := k.near.c
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	if err := c.usable(name); err != nil {
		return k, err
	}
	if k.near.refused != nil {
		return k, c.refuse(ErrTopology, name, "%w", k.near.refused)
	}
	return k, nil
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
		if off, length = b.Of(i); shared {
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
