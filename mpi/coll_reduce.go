package mpi

// Collectives that combine data (MPI-4.1 sections 6.9 to 6.11), each in three forms from one
// description (coll_args.go). In place means that out holds the rank's contribution: in is
// nil, or is out. For ReduceScatter that is all blocks, and the rank's block of the result
// is stored at the beginning.

import "github.com/muster-mpi/muster/internal/coll"

// Reduce combines the in of all ranks into root's out, element by element, in rank order.
// out is used at the root only. There, in may be the same slice or nil: then out holds
// root's contribution.
func Reduce[T Elem](c *Comm, in, out []T, op func() Op[T], root int) error {
	return reduceArgs(c, in, out, operation(op), root).call()
}

// Ireduce starts a [Reduce].
func Ireduce[T Elem](c *Comm, in, out []T, op func() Op[T], root int) Request {
	return reduceArgs(c, in, out, operation(op), root).start()
}

// ReduceInit prepares a [Reduce].
func ReduceInit[T Elem](c *Comm, in, out []T, op func() Op[T], root int) *Persistent {
	return reduceArgs(c, in, out, operation(op), root).prepare()
}

func reduceArgs[T Elem](c *Comm, in, out []T, op Op[T], root int) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Reduce, in: in, out: out, op: op, root: root}
}

// Allreduce combines the in of all ranks into out on every rank, element by element, in
// rank order. in may be the same slice or nil: then out holds the contribution.
func Allreduce[T Elem](c *Comm, in, out []T, op func() Op[T]) error {
	o := operation(op)
	if done, err := quickAllreduce(c, in, out, &o); done {
		return err
	}
	return allreduceArgs(c, in, out, o).call()
}

// Iallreduce starts an [Allreduce].
func Iallreduce[T Elem](c *Comm, in, out []T, op func() Op[T]) Request {
	return allreduceArgs(c, in, out, operation(op)).start()
}

// AllreduceInit prepares an [Allreduce].
func AllreduceInit[T Elem](c *Comm, in, out []T, op func() Op[T]) *Persistent {
	return allreduceArgs(c, in, out, operation(op)).prepare()
}

func allreduceArgs[T Elem](c *Comm, in, out []T, op Op[T]) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Allreduce, in: in, out: out, op: op}
}

// ReduceScatterBlock combines the in of all ranks and stores block r of the result in
// the out of rank r. in may be the same slice as out or nil: then out holds the whole
// contribution and receives the result at its beginning.
func ReduceScatterBlock[T Elem](c *Comm, in, out []T, op func() Op[T]) error {
	return reduceScatterBlockArgs(c, in, out, operation(op)).call()
}

// IreduceScatterBlock starts a [ReduceScatterBlock].
func IreduceScatterBlock[T Elem](c *Comm, in, out []T, op func() Op[T]) Request {
	return reduceScatterBlockArgs(c, in, out, operation(op)).start()
}

// ReduceScatterBlockInit prepares a [ReduceScatterBlock].
func ReduceScatterBlockInit[T Elem](c *Comm, in, out []T, op func() Op[T]) *Persistent {
	return reduceScatterBlockArgs(c, in, out, operation(op)).prepare()
}

func reduceScatterBlockArgs[T Elem](c *Comm, in, out []T, op Op[T]) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.ReduceScatter, in: in, out: out, op: op}
}

// ReduceScatter is [ReduceScatterBlock] with blocks of different lengths: rank r
// receives counts[r] elements, after those of the lower ranks. All ranks pass the same
// counts.
func ReduceScatter[T Elem](c *Comm, in, out []T, counts []int, op func() Op[T]) error {
	return reduceScatterArgs(c, in, out, counts, operation(op)).call()
}

// IreduceScatter starts a [ReduceScatter]. It does not retain counts.
func IreduceScatter[T Elem](c *Comm, in, out []T, counts []int, op func() Op[T]) Request {
	return reduceScatterArgs(c, in, out, counts, operation(op)).start()
}

// ReduceScatterInit prepares a [ReduceScatter]. It does not retain counts.
func ReduceScatterInit[T Elem](c *Comm, in, out []T, counts []int, op func() Op[T]) *Persistent {
	return reduceScatterArgs(c, in, out, counts, operation(op)).prepare()
}

func reduceScatterArgs[T Elem](c *Comm, in, out []T, counts []int, op Op[T]) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.ReduceScatter, variant: coll.Irregular, in: in, out: out, sendCounts: counts, op: op}
}

// Scan combines the in of the ranks up to and including this one into out. in may be the
// same slice or nil: then out holds the rank's contribution.
func Scan[T Elem](c *Comm, in, out []T, op func() Op[T]) error {
	return scanArgs(c, in, out, operation(op)).call()
}

// Iscan starts a [Scan].
func Iscan[T Elem](c *Comm, in, out []T, op func() Op[T]) Request {
	return scanArgs(c, in, out, operation(op)).start()
}

// ScanInit prepares a [Scan].
func ScanInit[T Elem](c *Comm, in, out []T, op func() Op[T]) *Persistent {
	return scanArgs(c, in, out, operation(op)).prepare()
}

func scanArgs[T Elem](c *Comm, in, out []T, op Op[T]) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Scan, in: in, out: out, op: op}
}

// Exscan combines the in of the lower ranks into out. The out of rank 0 is not written.
// in may be the same slice or nil: then out holds the rank's contribution.
func Exscan[T Elem](c *Comm, in, out []T, op func() Op[T]) error {
	return exscanArgs(c, in, out, operation(op)).call()
}

// Iexscan starts an [Exscan].
func Iexscan[T Elem](c *Comm, in, out []T, op func() Op[T]) Request {
	return exscanArgs(c, in, out, operation(op)).start()
}

// ExscanInit prepares an [Exscan].
func ExscanInit[T Elem](c *Comm, in, out []T, op func() Op[T]) *Persistent {
	return exscanArgs(c, in, out, operation(op)).prepare()
}

func exscanArgs[T Elem](c *Comm, in, out []T, op Op[T]) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Exscan, in: in, out: out, op: op}
}

// allreduce is Allreduce on behalf of the call name.
func allreduce[T Elem](c *Comm, name string, in, out []T, op func() Op[T]) error {
	return allreduceArgs(c, in, out, op()).callInside(name)
}
