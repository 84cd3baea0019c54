package mpi

// Collectives that move data (MPI-4.1 sections 6.4 to 6.8), each in three forms from one
// description (coll_args.go). In place means:
//
//	Gather, Allgather   the rank's own block is already in out: in is nil, or is that part of
//	                    out
//	Scatter             the root's own block stays in in: out is nil, or is that part of in
//	Alltoall            out holds the data to send and receives the result, block by block:
//	                    in is nil, or is out

import "github.com/muster-mpi/muster/internal/coll"

// Bcast copies root's buf to the buf of all ranks. All have the same length.
func Bcast[T Elem](c *Comm, buf []T, root int) error {
	if done, err := quickBcast(c, buf, root); done {
		return err
	}
	return bcastArgs(c, buf, root).call()
}

// Ibcast starts a [Bcast].
func Ibcast[T Elem](c *Comm, buf []T, root int) Request { return bcastArgs(c, buf, root).start() }

// BcastInit prepares a [Bcast].
func BcastInit[T Elem](c *Comm, buf []T, root int) *Persistent {
	return bcastArgs(c, buf, root).prepare()
}

func bcastArgs[T Elem](c *Comm, buf []T, root int) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Bcast, out: buf, root: root}
}

// Gather gathers the in of all ranks into root's out, in rank order. out is used at the
// root only, and holds the blocks of all ranks. At the root, in may be nil if out
// already holds its own block.
func Gather[T Elem](c *Comm, in, out []T, root int) error { return gatherArgs(c, in, out, root).call() }

// Igather starts a [Gather].
func Igather[T Elem](c *Comm, in, out []T, root int) Request {
	return gatherArgs(c, in, out, root).start()
}

// GatherInit prepares a [Gather].
func GatherInit[T Elem](c *Comm, in, out []T, root int) *Persistent {
	return gatherArgs(c, in, out, root).prepare()
}

func gatherArgs[T Elem](c *Comm, in, out []T, root int) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Gather, in: in, out: out, root: root}
}

// Gatherv is [Gather] with blocks of different lengths: root receives counts[r] elements
// from rank r and stores them from element displs[r] of out on. If displs is nil, the
// blocks follow one another. out, counts and displs are used at the root only.
func Gatherv[T Elem](c *Comm, in, out []T, counts, displs []int, root int) error {
	return gathervArgs(c, in, out, counts, displs, root).call()
}

// Igatherv starts a [Gatherv]. It does not retain counts and displs.
func Igatherv[T Elem](c *Comm, in, out []T, counts, displs []int, root int) Request {
	return gathervArgs(c, in, out, counts, displs, root).start()
}

// GathervInit prepares a [Gatherv]. It does not retain counts and displs.
func GathervInit[T Elem](c *Comm, in, out []T, counts, displs []int, root int) *Persistent {
	return gathervArgs(c, in, out, counts, displs, root).prepare()
}

func gathervArgs[T Elem](c *Comm, in, out []T, counts, displs []int, root int) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Gather, variant: coll.Irregular, in: in, out: out, recvCounts: counts, recvDispls: displs, root: root}
}

// Scatter sends block r of root's in to the out of rank r. in is used at the root only.
// At the root, out may be nil: then its own block is not copied.
func Scatter[T Elem](c *Comm, in, out []T, root int) error {
	return scatterArgs(c, in, out, root).call()
}

// Iscatter starts a [Scatter].
func Iscatter[T Elem](c *Comm, in, out []T, root int) Request {
	return scatterArgs(c, in, out, root).start()
}

// ScatterInit prepares a [Scatter].
func ScatterInit[T Elem](c *Comm, in, out []T, root int) *Persistent {
	return scatterArgs(c, in, out, root).prepare()
}

func scatterArgs[T Elem](c *Comm, in, out []T, root int) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Scatter, in: in, out: out, root: root}
}

// Scatterv is [Scatter] with blocks of different lengths: rank r receives the counts[r]
// elements from element displs[r] of root's in on. If displs is nil, the blocks follow
// one another. in, counts and displs are used at the root only.
func Scatterv[T Elem](c *Comm, in []T, counts, displs []int, out []T, root int) error {
	return scattervArgs(c, in, counts, displs, out, root).call()
}

// Iscatterv starts a [Scatterv]. It does not retain counts and displs.
func Iscatterv[T Elem](c *Comm, in []T, counts, displs []int, out []T, root int) Request {
	return scattervArgs(c, in, counts, displs, out, root).start()
}

// ScattervInit prepares a [Scatterv]. It does not retain counts and displs.
func ScattervInit[T Elem](c *Comm, in []T, counts, displs []int, out []T, root int) *Persistent {
	return scattervArgs(c, in, counts, displs, out, root).prepare()
}

func scattervArgs[T Elem](c *Comm, in []T, counts, displs []int, out []T, root int) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Scatter, variant: coll.Irregular, in: in, sendCounts: counts, sendDispls: displs, out: out, root: root}
}

// Allgather gathers the in of all ranks into out on every rank, in rank order. in may
// be nil on all ranks if out already holds their own blocks.
func Allgather[T Elem](c *Comm, in, out []T) error {
	if done, err := quickAllgather(c, in, out); done {
		return err
	}
	return allgatherArgs(c, in, out).call()
}

// Iallgather starts an [Allgather].
func Iallgather[T Elem](c *Comm, in, out []T) Request { return allgatherArgs(c, in, out).start() }

// AllgatherInit prepares an [Allgather].
func AllgatherInit[T Elem](c *Comm, in, out []T) *Persistent {
	return allgatherArgs(c, in, out).prepare()
}

func allgatherArgs[T Elem](c *Comm, in, out []T) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Allgather, in: in, out: out}
}

// Allgatherv is [Allgather] with blocks of different lengths: the block of rank r has
// counts[r] elements and is stored from element displs[r] of out on. If displs is nil,
// the blocks follow one another. All ranks pass the same counts.
func Allgatherv[T Elem](c *Comm, in, out []T, counts, displs []int) error {
	return allgathervArgs(c, in, out, counts, displs).call()
}

// Iallgatherv starts an [Allgatherv]. It does not retain counts and displs.
func Iallgatherv[T Elem](c *Comm, in, out []T, counts, displs []int) Request {
	return allgathervArgs(c, in, out, counts, displs).start()
}

// AllgathervInit prepares an [Allgatherv]. It does not retain counts and displs.
func AllgathervInit[T Elem](c *Comm, in, out []T, counts, displs []int) *Persistent {
	return allgathervArgs(c, in, out, counts, displs).prepare()
}

func allgathervArgs[T Elem](c *Comm, in, out []T, counts, displs []int) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Allgather, variant: coll.Irregular, in: in, out: out, recvCounts: counts, recvDispls: displs}
}

// Alltoall sends block r of in to rank r and receives block r of out from it. in may be
// nil on all ranks: then out holds the data to send.
func Alltoall[T Elem](c *Comm, in, out []T) error {
	if done, err := quickAlltoall(c, in, out); done {
		return err
	}
	return alltoallArgs(c, in, out).call()
}

// Ialltoall starts an [Alltoall].
func Ialltoall[T Elem](c *Comm, in, out []T) Request { return alltoallArgs(c, in, out).start() }

// AlltoallInit prepares an [Alltoall].
func AlltoallInit[T Elem](c *Comm, in, out []T) *Persistent {
	return alltoallArgs(c, in, out).prepare()
}

func alltoallArgs[T Elem](c *Comm, in, out []T) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Alltoall, in: in, out: out}
}

// Alltoallv is [Alltoall] with blocks of different lengths. It sends to rank r the
// sendCounts[r] elements from element sendDispls[r] of in on, and stores the
// recvCounts[r] elements from rank r from element recvDispls[r] of out on. If
// displacements are nil, the blocks follow one another. If in is nil on all ranks, the
// blocks of out are sent and replaced, and sendCounts and sendDispls are not used.
func Alltoallv[T Elem](c *Comm, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) error {
	return alltoallvArgs(c, in, sendCounts, sendDispls, out, recvCounts, recvDispls).call()
}

// Ialltoallv starts an [Alltoallv]. It does not retain counts and displacements.
func Ialltoallv[T Elem](c *Comm, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) Request {
	return alltoallvArgs(c, in, sendCounts, sendDispls, out, recvCounts, recvDispls).start()
}

// AlltoallvInit prepares an [Alltoallv]. It does not retain counts and displacements.
func AlltoallvInit[T Elem](c *Comm, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) *Persistent {
	return alltoallvArgs(c, in, sendCounts, sendDispls, out, recvCounts, recvDispls).prepare()
}

func alltoallvArgs[T Elem](c *Comm, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Alltoall, variant: coll.Irregular, in: in, sendCounts: sendCounts, sendDispls: sendDispls, out: out, recvCounts: recvCounts, recvDispls: recvDispls}
}

// Alltoallw sends the elements of in that sends[r] selects to rank r, and stores those
// from rank r in the elements of out that recvs[r] selects. All layouts count from the
// beginning of their slice. A nil layout is an empty block.
func Alltoallw[T Elem](c *Comm, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) error {
	return alltoallwArgs(c, in, sends, out, recvs).call()
}

// Ialltoallw starts an [Alltoallw]. out holds the result when the request is complete.
func Ialltoallw[T Elem](c *Comm, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) Request {
	return alltoallwArgs(c, in, sends, out, recvs).start()
}

// AlltoallwInit prepares an [Alltoallw].
func AlltoallwInit[T Elem](c *Comm, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) *Persistent {
	return alltoallwArgs(c, in, sends, out, recvs).prepare()
}

func alltoallwArgs[T Elem](c *Comm, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Alltoall, variant: coll.Layouts, in: in, sends: sends, out: out, recvs: recvs}
}

// bcast is Bcast on behalf of the call op.
func (c *Comm) bcast(op string, b []byte, root int) error {
	return bcastArgs(c, b, root).callInside(op)
}

// allgather is Allgather on behalf of the call op.
func allgather[T Elem](c *Comm, op string, in, out []T) error {
	return allgatherArgs(c, in, out).callInside(op)
}
