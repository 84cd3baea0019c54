package main

// Shapes of the collective calls that commands analyse: equal blocks, default options.

import (
	"slices"

	"github.com/muster-mpi/muster/internal/coll"
)

// wholeData reports whether a collective operates on one vector of the same length on
// all ranks, instead of blocks.
func wholeData(kind coll.Kind) bool {
	return slices.Contains([]coll.Kind{coll.Bcast, coll.Reduce, coll.Allreduce, coll.Scan, coll.Exscan}, kind)
}

// shapeOf returns a call whose blocks, or data, have the given number of bytes. If
// bytes is a multiple of eight, data is split between elements of eight bytes.
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
