package mpi

// Scans (MPI-4.1 section 6.11). In place is as for Allreduce.

import "github.com/muster-mpi/muster/internal/coll"

// Scan combines the in of the ranks up to and including this one into out. in may be the
// same slice or nil: then out holds the rank's contribution.
func Scan[T Elem](c *Comm, in, out []T, op Op[T]) error {
	k, err := combined(c, "Scan", coll.Scan, in, out, &op, true)
	if err != nil {
		return err
	}
	return reduction(c, &k, op)
}

// Iscan starts a [Scan].
func Iscan[T Elem](c *Comm, in, out []T, op Op[T]) Request {
	k, err := combined(c, "Iscan", coll.Scan, in, out, &op, true)
	return startedReduction(c, &k, op, err)
}

// ScanInit prepares a [Scan].
func ScanInit[T Elem](c *Comm, in, out []T, op Op[T]) *Persistent {
	k, err := combined(c, "ScanInit", coll.Scan, in, out, &op, true)
	return preparedReduction(c, &k, op, err)
}

// Exscan combines the in of the lower ranks into out. The out of rank 0 is not written.
// in may be the same slice or nil: then out holds the rank's contribution.
func Exscan[T Elem](c *Comm, in, out []T, op Op[T]) error {
	k, err := combined(c, "Exscan", coll.Exscan, in, out, &op, true)
	if err != nil {
		return err
	}
	return reduction(c, &k, op)
}

// Iexscan starts an [Exscan].
func Iexscan[T Elem](c *Comm, in, out []T, op Op[T]) Request {
	k, err := combined(c, "Iexscan", coll.Exscan, in, out, &op, true)
	return startedReduction(c, &k, op, err)
}

// ExscanInit prepares an [Exscan].
func ExscanInit[T Elem](c *Comm, in, out []T, op Op[T]) *Persistent {
	k, err := combined(c, "ExscanInit", coll.Exscan, in, out, &op, true)
	return preparedReduction(c, &k, op, err)
}
