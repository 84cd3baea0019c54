package nbody

import (
	"math"
	"slices"

	"github.com/muster-mpi/muster/mpi"
)

const tagEssential = 1

// box is what a rank tells the others about its stars: where they are, how many, and how
// many interactions they took so far. It has 64 bytes.
type box struct {
	Low, High           vector
	Stars, Interactions float64
}

// union returns the box around two boxes.
func (b box) union(c box) box {
	for d := range b.Low {
		b.Low[d], b.High[d] = min(b.Low[d], c.Low[d]), max(b.High[d], c.High[d])
	}
	b.Stars += c.Stars
	b.Interactions += c.Interactions
	return b
}

// distance2 returns the square of the distance between a position and the box.
func (b box) distance2(at vector) float64 {
	var d vector
	for i := range d {
		d[i] = max(b.Low[i]-at[i], 0, at[i]-b.High[i])
	}
	return d.square()
}

// gatherBoxes gathers the boxes of all ranks. A rank without stars has an empty one.
func (s *simulation) gatherBoxes() error {
	inf := math.Inf(1)
	mine := box{Low: vector{inf, inf, inf}, High: vector{-inf, -inf, -inf}, Stars: float64(len(s.stars)), Interactions: float64(s.interactions)}
	for _, p := range s.stars {
		for d, x := range p.at {
			mine.Low[d], mine.High[d] = min(mine.Low[d], x), max(mine.High[d], x)
		}
	}
	s.clock.EnterMPI()
	defer s.clock.LeaveMPI()
	return mpi.Allgather(s.c, []box{mine}, s.boxes)
}

// exchange sends every other rank the essential part of the local tree, and receives those
// of the others into incoming. It starts with the next rank, so that not all ranks send to
// the same one.
func (s *simulation) exchange() error {
	me, size := s.c.Rank(), s.c.Size()
	s.reqs = s.reqs[:0]
	s.incoming = s.incoming[:0]
	for distance := 1; distance < size; distance++ {
		dst := (me + distance) % size
		s.outgoing[dst] = s.local.essential(s.boxes[dst], s.outgoing[dst][:0])
		s.clock.EnterMPI()
		s.reqs = append(s.reqs, mpi.Isend(s.c, s.outgoing[dst], dst, tagEssential))
		s.clock.LeaveMPI()
	}
	s.clock.EnterMPI()
	defer s.clock.LeaveMPI()
	for distance := 1; distance < size; distance++ {
		src := (me - distance + size) % size
		status, err := s.c.Probe(src, tagEssential)
		if err != nil {
			return err
		}
		n, _ := mpi.Count[point](status)
		old := len(s.incoming)
		s.incoming = slices.Grow(s.incoming, n)[:old+n]
		if _, err := mpi.Recv(s.c, s.incoming[old:], src, tagEssential); err != nil {
			return err
		}
	}
	return mpi.WaitAll(s.reqs...)
}
