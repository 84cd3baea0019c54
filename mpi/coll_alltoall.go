package mpi

// Alltoall (MPI-4.1 section 6.8). In place means that out holds what is to be sent
// and gets what is received, block by block: in is nil, or is out. Alltoallw has a
// file of its own.

import "github.com/muster-mpi/muster/internal/coll"

// Alltoall sends the r-th part of in to rank r and receives its part for us as the
// r-th of out. in may be nil on all ranks: then out holds what is to be sent.
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

// Ialltoall starts an Alltoall.
func Ialltoall[T Elem](c *Comm, in, out []T) Request {
	k, err := alltoallCall(c, "Ialltoall", in, out)
	return c.started(&k, err)
}

// AlltoallInit prepares an Alltoall.
func AlltoallInit[T Elem](c *Comm, in, out []T) *Persistent {
	k, err := alltoallCall(c, "AlltoallInit", in, out)
	return c.prepared(&k, err)
}

func alltoallCall[T Elem](c *Comm, name string, in, out []T) (collCall, error) {
	if c.inter != nil {
		return interAlltoallCall(c, name, in, out)
	}
	k := collCall{name: name, key: planKey{kind: coll.Alltoall, elem: sizeOf[T]()}}
	if err := checkType[T](c, name); err != nil {
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

// Alltoallv is Alltoall of blocks of any length: rank r is sent sendCounts[r]
// elements that begin at element sendDispls[r] of in, and its recvCounts[r] elements
// go to element recvDispls[r] of out. Places that are nil put the blocks one after
// the other. With in nil on all ranks, the blocks of out are sent and replaced, and
// sendCounts and sendDispls are not used.
func Alltoallv[T Elem](c *Comm, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) error {
	k, err := alltoallvCall(c, "Alltoallv", in, sendCounts, sendDispls, out, recvCounts, recvDispls)
	if err != nil {
		return err
	}
	return c.blocking(&k)
}

// Ialltoallv starts an Alltoallv. Counts and places are not used after the call.
func Ialltoallv[T Elem](c *Comm, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) Request {
	k, err := alltoallvCall(c, "Ialltoallv", in, sendCounts, sendDispls, out, recvCounts, recvDispls)
	return c.started(&k, err)
}

// AlltoallvInit prepares an Alltoallv. Counts and places are not used after the
// call.
func AlltoallvInit[T Elem](c *Comm, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) *Persistent {
	k, err := alltoallvCall(c, "AlltoallvInit", in, sendCounts, sendDispls, out, recvCounts, recvDispls)
	return c.prepared(&k, err)
}

func alltoallvCall[T Elem](c *Comm, name string, in []T, sendCounts, sendDispls []int, out []T, recvCounts, recvDispls []int) (collCall, error) {
	if c.inter != nil {
		return interAlltoallvCall(c, name, in, sendCounts, sendDispls, out, recvCounts, recvDispls)
	}
	k := collCall{name: name, key: planKey{kind: coll.Alltoall, elem: sizeOf[T](), irregular: true}}
	if err := checkType[T](c, name); err != nil {
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
