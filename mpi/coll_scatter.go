package mpi

// Scatter (MPI-4.1 section 6.6). In place means that the root's own block stays in in:
// out is nil, or is that part of in.

import "github.com/muster-mpi/muster/internal/coll"

// Scatter sends block r of root's in to the out of rank r. in is used at the root only.
// At the root, out may be nil: then its own block is not copied.
func Scatter[T Elem](c *Comm, in, out []T, root int) error {
	k, err := scatterCall(c, "Scatter", in, out, root)
	if err != nil {
		return err
	}
	return c.blocking(&k)
}

// Iscatter starts a [Scatter].
func Iscatter[T Elem](c *Comm, in, out []T, root int) Request {
	k, err := scatterCall(c, "Iscatter", in, out, root)
	return c.started(&k, err)
}

// ScatterInit prepares a [Scatter].
func ScatterInit[T Elem](c *Comm, in, out []T, root int) *Persistent {
	k, err := scatterCall(c, "ScatterInit", in, out, root)
	return c.prepared(&k, err)
}

func scatterCall[T Elem](c *Comm, name string, in, out []T, root int) (collCall, error) {
	if c.inter != nil {
		return interScatterCall(c, name, in, out, root)
	}
	k := collCall{name: name, key: planKey{kind: coll.Scatter, root: root, elem: sizeOf[T]()}}
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	if err := c.checkRoot(name, root); err != nil {
		return k, err
	}
	n := len(out)
	if c.rank == root {
		if out == nil {
			n = len(in) / c.size
		}
		if len(in) != n*c.size {
			if out == nil {
				return k, c.refuse(ErrCount, name, "in has %d elements, which %d ranks cannot share evenly", len(in), c.size)
			}
			return k, c.refuse(ErrCount, name, "in has %d elements; %d ranks with %d each need %d", len(in), c.size, n, n*c.size)
		}
		k.in = rawBytes(in)
		k.key.inPlace = n > 0 && (out == nil || same(out, in[root*n:]))
	}
	k.key.bytes = n * k.key.elem
	if !k.key.inPlace {
		k.out = rawBytes(out)
	}
	return k, nil
}

// Scatterv is [Scatter] with blocks of different lengths: rank r receives the counts[r]
// elements from element displs[r] of root's in on. If displs is nil, the blocks follow
// one another. in, counts and displs are used at the root only.
func Scatterv[T Elem](c *Comm, in []T, counts, displs []int, out []T, root int) error {
	k, err := scattervCall(c, "Scatterv", in, counts, displs, out, root)
	if err != nil {
		return err
	}
	return c.blocking(&k)
}

// Iscatterv starts a [Scatterv]. It does not retain counts and displs.
func Iscatterv[T Elem](c *Comm, in []T, counts, displs []int, out []T, root int) Request {
	k, err := scattervCall(c, "Iscatterv", in, counts, displs, out, root)
	return c.started(&k, err)
}

// ScattervInit prepares a [Scatterv]. It does not retain counts and displs.
func ScattervInit[T Elem](c *Comm, in []T, counts, displs []int, out []T, root int) *Persistent {
	k, err := scattervCall(c, "ScattervInit", in, counts, displs, out, root)
	return c.prepared(&k, err)
}

func scattervCall[T Elem](c *Comm, name string, in []T, counts, displs []int, out []T, root int) (collCall, error) {
	if c.inter != nil {
		return interScattervCall(c, name, in, counts, displs, out, root)
	}
	k := collCall{name: name, key: planKey{kind: coll.Scatter, root: root, elem: sizeOf[T](), irregular: true}}
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	if err := c.checkRoot(name, root); err != nil {
		return k, err
	}
	if c.rank != root {
		k.out, k.key.bytes = rawBytes(out), len(out)*k.key.elem
		return k, nil
	}
	if err := c.checkBlocks(name, "in", len(in), counts, displs); err != nil {
		return k, err
	}
	at, n := blockOf(counts, displs, root)
	if out != nil && len(out) != n {
		return k, c.refuse(ErrCount, name, "out has %d elements, but counts[%d], for this rank, is %d", len(out), root, n)
	}
	k.in, k.sendCounts, k.sendDispls = rawBytes(in), counts, displs
	if k.key.inPlace = n > 0 && (out == nil || same(out, in[at:])); !k.key.inPlace {
		k.out = rawBytes(out)
	}
	return k, nil
}
