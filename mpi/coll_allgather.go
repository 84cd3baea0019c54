package mpi

// Allgather (MPI-4.1 section 6.7). In place means that every rank has its own block
// in out already: in is nil, or is that part of out.

import "github.com/muster-mpi/muster/internal/coll"

// Allgather gathers the in of all ranks into out on every rank, in rank order. in may
// be nil on all ranks if out already holds their own blocks.
func Allgather[T Elem](c *Comm, in, out []T) error {
	if done, err := quickAllgather(c, in, out); done {
		return err
	}
	k, err := allgatherCall(c, "Allgather", in, out)
	if err != nil {
		return err
	}
	return c.blocking(&k)
}

// allgather is Allgather on behalf of the call op.
func allgather[T Elem](c *Comm, op string, in, out []T) error {
	return c.inner(allgatherCall(c, op, in, out))
}

// Iallgather starts an [Allgather].
func Iallgather[T Elem](c *Comm, in, out []T) Request {
	k, err := allgatherCall(c, "Iallgather", in, out)
	return c.started(&k, err)
}

// AllgatherInit prepares an [Allgather].
func AllgatherInit[T Elem](c *Comm, in, out []T) *Persistent {
	k, err := allgatherCall(c, "AllgatherInit", in, out)
	return c.prepared(&k, err)
}

func allgatherCall[T Elem](c *Comm, name string, in, out []T) (collCall, error) {
	if c.inter != nil {
		return interAllgatherCall(c, name, in, out)
	}
	k := collCall{name: name, key: planKey{kind: coll.Allgather, elem: sizeOf[T]()}}
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	if err := c.usable(name); err != nil {
		return k, err
	}
	return k, gathered(c, &k, in, out)
}

// Allgatherv is [Allgather] with blocks of different lengths: the block of rank r has
// counts[r] elements and is stored from element displs[r] of out on. If displs is nil,
// the blocks follow one another. All ranks pass the same counts.
func Allgatherv[T Elem](c *Comm, in, out []T, counts, displs []int) error {
	k, err := allgathervCall(c, "Allgatherv", in, out, counts, displs)
	if err != nil {
		return err
	}
	return c.blocking(&k)
}

// Iallgatherv starts an [Allgatherv]. It does not retain counts and displs.
func Iallgatherv[T Elem](c *Comm, in, out []T, counts, displs []int) Request {
	k, err := allgathervCall(c, "Iallgatherv", in, out, counts, displs)
	return c.started(&k, err)
}

// AllgathervInit prepares an [Allgatherv]. It does not retain counts and displs.
func AllgathervInit[T Elem](c *Comm, in, out []T, counts, displs []int) *Persistent {
	k, err := allgathervCall(c, "AllgathervInit", in, out, counts, displs)
	return c.prepared(&k, err)
}

func allgathervCall[T Elem](c *Comm, name string, in, out []T, counts, displs []int) (collCall, error) {
	if c.inter != nil {
		return interAllgathervCall(c, name, in, out, counts, displs)
	}
	k := collCall{name: name, key: planKey{kind: coll.Allgather, elem: sizeOf[T](), irregular: true}}
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	if err := c.usable(name); err != nil {
		return k, err
	}
	return k, gatheredv(c, &k, in, out, counts, displs)
}
