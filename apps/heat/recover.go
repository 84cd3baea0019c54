package heat

// Checkpoints: after a failure the ranks go on from the temperature of an earlier step.

import "github.com/muster-mpi/muster/mpi"

// A rank saves two slices: its rectangle and the number of iterations, and the temperature.
const (
	savedX = iota
	savedY
	savedWidth
	savedHeight
	savedIterations
)

// save stores the temperature after a step.
func (s *plate) save(c *mpi.Comm, step int) error {
	about := []float64{float64(s.firstX), float64(s.firstY), float64(s.nx), float64(s.ny), float64(s.iterations)}
	points := make([]float64, 0, s.nx*s.ny)
	s.rows(func(from, to int) { points = append(points, s.now[from:to]...) })
	return mpi.Checkpoint(c, step, about, points)
}

// restore sets the temperature to that of the last checkpoint and returns its step, 0 if there
// is none.
func (s *plate) restore(c *mpi.Comm) (step int, err error) {
	step, parts, err := mpi.Restore[float64](c)
	if err != nil || step == 0 {
		return 0, err
	}
	s.iterations = int(parts[0].Data[0][savedIterations])
	if parts[0].Size == c.Size() { // the rectangles are the same
		points := parts[0].Data[1]
		s.rows(func(from, to int) { points = points[copy(s.now[from:to], points):] })
		return step, nil
	}
	// There are fewer ranks, with other rectangles. Every rank gets the whole plate, which is small, and takes its
	// own from it. Each point is in one part, so the sum of all is the plate.
	all := make([]float64, s.n*s.n)
	for _, p := range parts {
		about, points := p.Data[0], p.Data[1]
		width := int(about[savedWidth])
		for j := range int(about[savedHeight]) {
			at := (int(about[savedY])+j)*s.n + int(about[savedX])
			copy(all[at:at+width], points[j*width:])
		}
	}
	if err := mpi.Allreduce(c, all, all, mpi.Sum); err != nil {
		return 0, err
	}
	for j := range s.ny {
		copy(s.now[s.at(0, j):s.at(s.nx, j)], all[(s.firstY+j)*s.n+s.firstX:])
	}
	return step, s.save(c, step) // so that each part has a copy again
}
