package mpi

// Broadcast (MPI-4.1 section 6.4).

import "github.com/muster-mpi/muster/internal/coll"

// Bcast copies root's buf to the buf of all ranks. All have the same length.
func Bcast[T Elem](c *Comm, buf []T, root int) error {
	if done, err := quickBcast(c, buf, root); done {
		return err
	}
	k, err := bcastCall(c, "Bcast", buf, root)
	if err != nil {
		return err
	}
	return c.blocking(&k)
}

// Ibcast starts a [Bcast].
func Ibcast[T Elem](c *Comm, buf []T, root int) Request {
	k, err := bcastCall(c, "Ibcast", buf, root)
	return c.started(&k, err)
}

// BcastInit prepares a [Bcast].
func BcastInit[T Elem](c *Comm, buf []T, root int) *Persistent {
	k, err := bcastCall(c, "BcastInit", buf, root)
	return c.prepared(&k, err)
}

func bcastCall[T Elem](c *Comm, name string, buf []T, root int) (collCall, error) {
	if c.inter != nil {
		return interBcastCall(c, name, buf, root)
	}
	k := collCall{name: name, out: rawBytes(buf)}
	k.key = planKey{kind: coll.Bcast, root: root, elem: sizeOf[T](), bytes: len(k.out)}
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	return k, c.checkRoot(name, root)
}

// bcast is Bcast on behalf of the call op.
func (c *Comm) bcast(op string, b []byte, root int) error {
	return c.inner(bcastCall(c, op, b, root))
}
