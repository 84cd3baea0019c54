package mpi

// Gather (MPI-4.1 section 6.5). In place means that the root's own block is already in
// out: in is nil, or is that part of out.

import "github.com/muster-mpi/muster/internal/coll"

// Gather gathers the in of all ranks into root's out, in rank order. out is used at the
// root only, and holds the blocks of all ranks. At the root, in may be nil if out
// already holds its own block.
func Gather[T Elem](c *Comm, in, out []T, root int) error {
	k, err := gatherCall(c, "Gather", in, out, root)
	if err != nil {
		return err
	}
	return c.blocking(&k)
}

// Igather starts a [Gather].
func Igather[T Elem](c *Comm, in, out []T, root int) Request {
	k, err := gatherCall(c, "Igather", in, out, root)
	return c.started(&k, err)
}

// GatherInit prepares a [Gather].
func GatherInit[T Elem](c *Comm, in, out []T, root int) *Persistent {
	k, err := gatherCall(c, "GatherInit", in, out, root)
	return c.prepared(&k, err)
}

func gatherCall[T Elem](c *Comm, name string, in, out []T, root int) (collCall, error) {
	if c.inter != nil {
		return interGatherCall(c, name, in, out, root)
	}
	k := collCall{name: name, key: planKey{kind: coll.Gather, root: root, elem: sizeOf[T]()}}
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	if err := c.checkRoot(name, root); err != nil {
		return k, err
	}
	if c.rank != root {
		k.in, k.key.recv = rawBytes(in), len(in)*k.key.elem
		return k, nil
	}
	return k, gathered(c, &k, in, out)
}

// gathered completes a call whose out has a block for every rank.
func gathered[T Elem](c *Comm, k *collCall, in, out []T) error {
	n := len(in)
	if in == nil {
		n = len(out) / c.size
	}
	if len(out) != n*c.size {
		if in == nil {
			return c.refuse(ErrCount, k.name, "out has %d elements, which %d ranks cannot share evenly", len(out), c.size)
		}
		return c.refuse(ErrCount, k.name, "out has %d elements; %d ranks with %d each need %d", len(out), c.size, n, n*c.size)
	}
	k.out, k.key.recv = rawBytes(out), n*k.key.elem
	if k.key.inPlace = n > 0 && (in == nil || same(in, out[c.rank*n:])); !k.key.inPlace {
		k.in = rawBytes(in)
	}
	return nil
}

// Gatherv is [Gather] with blocks of different lengths: root receives counts[r] elements
// from rank r and stores them from element displs[r] of out on. If displs is nil, the
// blocks follow one another. out, counts and displs are used at the root only.
func Gatherv[T Elem](c *Comm, in, out []T, counts, displs []int, root int) error {
	k, err := gathervCall(c, "Gatherv", in, out, counts, displs, root)
	if err != nil {
		return err
	}
	return c.blocking(&k)
}

// Igatherv starts a [Gatherv]. It does not retain counts and displs.
func Igatherv[T Elem](c *Comm, in, out []T, counts, displs []int, root int) Request {
	k, err := gathervCall(c, "Igatherv", in, out, counts, displs, root)
	return c.started(&k, err)
}

// GathervInit prepares a [Gatherv]. It does not retain counts and displs.
func GathervInit[T Elem](c *Comm, in, out []T, counts, displs []int, root int) *Persistent {
	k, err := gathervCall(c, "GathervInit", in, out, counts, displs, root)
	return c.prepared(&k, err)
}

func gathervCall[T Elem](c *Comm, name string, in, out []T, counts, displs []int, root int) (collCall, error) {
	if c.inter != nil {
		return interGathervCall(c, name, in, out, counts, displs, root)
	}
	k := collCall{name: name, key: planKey{kind: coll.Gather, root: root, elem: sizeOf[T](), irregular: true}}
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	if err := c.checkRoot(name, root); err != nil {
		return k, err
	}
	if c.rank != root {
		k.in, k.key.recv = rawBytes(in), len(in)*k.key.elem
		return k, nil
	}
	return k, gatheredv(c, &k, in, out, counts, displs)
}

// gatheredv is gathered for blocks of different lengths.
func gatheredv[T Elem](c *Comm, k *collCall, in, out []T, counts, displs []int) error {
	if err := c.checkBlocks(k.name, "out", len(out), counts, displs); err != nil {
		return err
	}
	at, n := blockOf(counts, displs, c.rank)
	if in != nil && len(in) != n {
		return c.refuse(ErrCount, k.name, "in has %d elements, but counts[%d], for this rank, is %d", len(in), c.rank, n)
	}
	k.out, k.recvCounts, k.recvDispls = rawBytes(out), counts, displs
	if k.key.inPlace = n > 0 && (in == nil || same(in, out[at:])); !k.key.inPlace {
		k.in = rawBytes(in)
	}
	return nil
}

// checkBlocks returns an error if the counts or displacements of blocks do not fit a
// slice of length n.
func (c *Comm) checkBlocks(name, what string, n int, counts, displs []int) error {
	return c.checkParts(name, what, "rank", c.size, n, counts, displs)
}

// checkParts is checkBlocks for the blocks of any peers: ranks or neighbors.
func (c *Comm) checkParts(name, what, peer string, peers, n int, counts, displs []int) error {
	if len(counts) != peers {
		return c.refuse(ErrCount, name, "there are %d counts for %s and %d %ss", len(counts), what, peers, peer)
	}
	if displs != nil && len(displs) != peers {
		return c.refuse(ErrArg, name, "there are %d displacements in %s and %d %ss; use nil for blocks one after the other", len(displs), what, peers, peer)
	}
	at := 0
	for r, m := range counts {
		if displs != nil {
			at = displs[r]
		}
		if m < 0 {
			return c.refuse(ErrCount, name, "the count of %s %d in %s is %d", peer, r, what, m)
		}
		if at < 0 || at > n || m > n-at {
			return c.refuse(ErrBuffer, name, "the block of %s %d is elements %d to %d of %s, which has %d", peer, r, at, at+m-1, what, n)
		}
		at += m
	}
	return nil
}

// blockOf returns the offset and the length of the block of a rank.
func blockOf(counts, displs []int, rank int) (at, n int) {
	if displs != nil {
		return displs[rank], counts[rank]
	}
	for _, m := range counts[:rank] {
		at += m
	}
	return at, counts[rank]
}
