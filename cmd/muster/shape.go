package main

// The calls that commands talk about: all blocks equal, everything else as usual.

import (
	"slices"

	"github.com/muster-mpi/muster/internal/coll"
)

// wholeData tells that a collective has data that all ranks have alike, and no
// blocks.
func wholeData(kind coll.Kind) bool {
	return slices.Contains([]coll.Kind{coll.Bcast, coll.Reduce, coll.Allreduce, coll.Scan, coll.Exscan}, kind)
}

// shapeOf is a call with equal blocks, or data, of so many bytes. Data is cut
// between elements of eight bytes where it can be.
func shapeOf(kind coll.Kind, rank, size, root, bytes int) coll.Shape {
	s := coll.Shape{Kind: kind, Rank: rank, Size: size, Root: root, Elem: 1, Commutes: true}
	if bytes%8 == 0 {
		s.Elem = 8
	}
	blocks := coll.Blocks{Each: bytes}
	switch kind {
	case coll.Barrier:
	case coll.Gather, coll.Allgather:
		s.Recv = blocks
	case coll.Scatter, coll.ReduceScatter:
		s.Send = blocks
	case coll.Alltoall:
		s.Send, s.Recv = blocks, blocks
	case coll.Neighbors:
		s.Send, s.Recv = blocks, blocks
		s.Sources = []int{(rank + size - 1) % size, (rank + 1) % size}
		s.Dests = []int{(rank + 1) % size, (rank + size - 1) % size}
	default:
		s.Bytes = bytes
	}
	return s
}
