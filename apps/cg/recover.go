package cg

// Checkpoints: after a failure the ranks go on from the vector of an earlier iteration. If
// they are no power of two any more, some of them only take part in the checkpoints.

import (
	"errors"
	"math/bits"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// RunSaved is Run with checkpoints, for mpi.Recover: it goes on from the last one. The number
// of ranks need not be a power of two, but only so many of them compute.
func RunSaved(c *mpi.Comm, class byte, saving npb.Saving) (result npb.Result, err error) {
	p, err := npb.Class(classes, class)
	if err != nil {
		return result, err
	}
	active, err := c.Split(activeColor(c.Rank(), c.Size()), c.Rank())
	if err != nil {
		return result, err
	}
	var s *solver // nil on ranks that do not compute
	if active != nil {
		g, err := newGrid(active, p.n)
		if err != nil {
			return result, err
		}
		s = newSolver(g, newMatrix(p, g))
		s.begin()
	}
	done, err := s.restore(c, p.n)
	if err != nil {
		return result, err
	}
	var clock npb.Clock
	if err := clock.Start(c); err != nil {
		return result, err
	}
	zeta := []float64{0}
	for i := done + 1; i <= p.iterations; i++ {
		saving.Begin(i)
		if s != nil {
			if zeta[0], err = s.iterate(p); err != nil {
				return result, err
			}
		}
		if saving.Due(i) {
			if err := s.save(c, i); err != nil {
				return result, err
			}
		}
	}
	clock.Stop()
	if err := mpi.Bcast(c, zeta, 0); err != nil { // for ranks that have not computed
		return result, err
	}
	if s != nil {
		if err := errors.Join(s.free(), active.Free()); err != nil {
			return result, err
		}
	}
	return clock.Finish(c, p.result(class, zeta[0]))
}

// computing returns the number of ranks that compute, the largest power of two.
func computing(ranks int) int { return 1 << (bits.Len(uint(ranks)) - 1) }

func activeColor(rank, ranks int) int {
	if rank < computing(ranks) {
		return 0
	}
	return mpi.Undefined
}

// save stores the vector after an iteration: the number of its first element, and the
// elements. Ranks that do not compute store nothing.
func (s *solver) save(c *mpi.Comm, iteration int) error {
	if s == nil {
		return mpi.Checkpoint[float64](c, iteration)
	}
	return mpi.Checkpoint(c, iteration, []float64{float64(s.cols.first)}, s.x)
}

// restore sets the vector of n elements to that of the last checkpoint and returns its
// iteration, 0 if there is none.
func (s *solver) restore(c *mpi.Comm, n int) (iteration int, err error) {
	iteration, parts, err := mpi.Restore[float64](c)
	if err != nil || iteration == 0 {
		return 0, err
	}
	if parts[0].Size == c.Size() { // the grid is the same
		if s != nil {
			copy(s.x, parts[0].Data[1])
		}
		return iteration, nil
	}
	// The grid is another one. Every rank gets the whole vector. The ranks of the first row had all of it, those of
	// other rows the same elements.
	_, across := shape(computing(parts[0].Size))
	all := make([]float64, n)
	for _, p := range parts {
		if p.Rank < across {
			copy(all[int(p.Data[0][0]):], p.Data[1])
		}
	}
	if err := mpi.Allreduce(c, all, all, mpi.Sum); err != nil {
		return 0, err
	}
	if s != nil {
		copy(s.x, all[s.cols.first:])
	}
	return iteration, s.save(c, iteration) // so that each part has a copy again
}
