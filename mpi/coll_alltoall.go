package mpi

// Alltoall (MPI-4.1 section 6.8). In place means that out holds the data to send and
// receives the result, block by block: in is nil, or is out. Alltoallw has its own
// file.

import "github.com/muster-mpi/muster/internal/coll"

// Alltoall sends block r of in to rank r and receives block r of out from it. in may be
// nil on all ranks: then out holds the data to send.
func Alltoall[T Elem](c *Comm, in, out []T) error {
	if done, err := quickAlltoall(c, in, out); done {
		return err
	}
	k, err := alltoallCall(c, "Alltoall", in, out)
	if err != nil {
		return err
	}
	return c.blocking(&k)
}

// Ialltoall starts an [Alltoall].
func Ialltoall[T Elem](c *Comm, in, out []T) Request {
	k, err := alltoallCall(c, "Ialltoall", in, out)
	return c.started(&k, err)
}

// AlltoallInit prepares an [Alltoall].
func AlltoallInit[T Elem](c *Comm, in, out []T) *Persistent {
	k, err := alltoallCall(c, "AlltoallInit", in, out)
	return c.prepared(&k, err)
}

func alltoallCall[T Elem](c *Comm, name string, in, out []T) (collCall, error) {
	if c.inter != nil {
		return interAlltoallCall(c, name, in, out)
	}
	k := collCall{name: name, key: planKey{kind: coll.Alltoall, elem: sizeOf[T]()}}
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	if err := c.usable(name); err != nil {
		return k, err
	}
	if in != nil && len(in) != len(out) || len(out)%c.size != 0 {
		return k, c.refuse(ErrCount, name, "in has %d elements and out %d; they must be equal and a multiple of %d ranks", len(in), len(out), c.size)
	}
	k.out = rawBytes(out)
	k.key.bytes = len(k.out) / c.size
	k.key.recv = k.key.bytes
	if k.key.inPlace = len(out) > 0 && (in == nil || same(in, out)); !k.key.inPlace {
		k.in = rawBytes(in)
	}
	return k, nil
}

// Alltoallv is [Alltoall] with blocks of different lengths. It sends to rank r the
// sendCounts[r] elements from element sendDispls[r] of in on, and stores the
// recvCounts[r] elements from rank r from element recvDispls[r] of out on. If
// displacements are nil, the blocks follow one another. If in is nil on all ranks, the
// blocks of out are sent and replaced, and sendCounts and sendDispls are not used.
func Alltoallv[T Elem](c *Comm, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) error {
	k, err := alltoallvCall(c, "Alltoallv", in, sendCounts, sendDispls, out, recvCounts, recvDispls)
	if err != nil {
		return err
	}
	return c.blocking(&k)
}

// Ialltoallv starts an [Alltoallv]. It does not retain counts and displacements.
func Ialltoallv[T Elem](c *Comm, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) Request {
	k, err := alltoallvCall(c, "Ialltoallv", in, sendCounts, sendDispls, out, recvCounts, recvDispls)
	return c.started(&k, err)
}

// AlltoallvInit prepares an [Alltoallv]. It does not retain counts and displacements.
func AlltoallvInit[T Elem](c *Comm, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) *Persistent {
	k, err := alltoallvCall(c, "AlltoallvInit", in, sendCounts, sendDispls, out, recvCounts, recvDispls)
	return c.prepared(&k, err)
}

func alltoallvCall[T Elem](c *Comm, name string, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) (collCall, error) {
	if c.inter != nil {
		return interAlltoallvCall(c, name, in, sendCounts, sendDispls, out, recvCounts, recvDispls)
	}
	k := collCall{name: name, key: planKey{kind: coll.Alltoall, elem: sizeOf[T](), irregular: true}}
	if err := checkType[T](c, &k); err != nil {
		return k, err
	}
	if err := c.usable(name); err != nil {
		return k, err
	}
	if err := c.checkBlocks(name, "out", len(out), recvCounts, recvDispls); err != nil {
		return k, err
	}
	k.out, k.recvCounts, k.recvDispls = rawBytes(out), recvCounts, recvDispls
	if in == nil && (sendCounts == nil || len(out) > 0) {
		k.key.inPlace, k.sendCounts, k.sendDispls = true, recvCounts, recvDispls
		return k, nil
	}
	if err := c.checkBlocks(name, "in", len(in), sendCounts, sendDispls); err != nil {
		return k, err
	}
	if mine, theirs := sendCounts[c.rank], recvCounts[c.rank]; mine != theirs {
		return k, c.refuse(ErrCount, name, "this rank sends itself %d elements and expects %d", mine, theirs)
	}
	k.in, k.sendCounts, k.sendDispls = rawBytes(in), sendCounts, sendDispls
	return k, nil
}
