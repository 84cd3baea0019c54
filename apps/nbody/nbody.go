package nbody

import (
	"fmt"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Classes lists the problem sizes.
const Classes = "SWA"

const (
	steps     = 10
	dt        = 0.01
	theta     = 0.5  // a cube is a point if its width is below theta times its distance
	softening = 0.02 // limits the force between close stars
)

// classes has the number of stars.
var classes = map[byte]int{'S': 1 << 10, 'W': 1 << 13, 'A': 1 << 16}

// vector is a position, a velocity or an acceleration.
type vector [3]float64

func (v vector) plus(w vector, scale float64) vector {
	return vector{v[0] + scale*w[0], v[1] + scale*w[1], v[2] + scale*w[2]}
}

func (v vector) square() float64 { return v[0]*v[0] + v[1]*v[1] + v[2]*v[2] }

// point is a mass at a position: a star, or a cube of the tree of another rank.
type point struct {
	at   vector
	mass float64
}

// simulation is a rank's part of the stars.
type simulation struct {
	c            *mpi.Comm
	clock        npb.Clock
	stars        []point
	speed        []vector
	acceleration []vector
	potential    []float64
	interactions int

	local, merged tree
	boxes         []box
	outgoing      [][]point // for each rank
	incoming      []point
	reqs          []mpi.Request
}

// Run simulates the stars of a class on the ranks of c. Any number of ranks will do.
func Run(c *mpi.Comm, class byte) (npb.Result, error) {
	n, err := npb.Class(classes, class)
	if err != nil {
		return npb.Result{}, err
	}
	s := newSimulation(c, n)
	if err := s.forces(); err != nil {
		return npb.Result{}, err
	}
	before, err := s.totals()
	if err != nil {
		return npb.Result{}, err
	}
	s.interactions = 0
	if err := s.clock.Start(c); err != nil {
		return npb.Result{}, err
	}
	for range steps {
		if err := s.step(); err != nil {
			return npb.Result{}, err
		}
	}
	s.clock.Stop()
	checks, interactions, err := s.verify(before)
	if err != nil {
		return npb.Result{}, err
	}
	return s.clock.Finish(c, npb.Result{
		Name: "N-BODY", Class: class, Size: fmt.Sprint(n), Iterations: steps,
		Operation: "interactions", Operations: interactions, Checks: checks,
	})
}

func newSimulation(c *mpi.Comm, n int) *simulation {
	s := &simulation{c: c, boxes: make([]box, c.Size()), outgoing: make([][]point, c.Size())}
	stars, speed := cluster(n)
	first, end := n*c.Rank()/c.Size(), n*(c.Rank()+1)/c.Size()
	s.stars, s.speed = stars[first:end:end], speed[first:end:end]
	s.acceleration, s.potential = make([]vector, end-first), make([]float64, end-first)
	return s
}

// step advances the stars by leapfrog integration: half a step of the speed, a step of the
// position, and the other half with the new forces.
func (s *simulation) step() error {
	s.accelerate(dt / 2)
	for i := range s.stars {
		s.stars[i].at = s.stars[i].at.plus(s.speed[i], dt)
	}
	if err := s.forces(); err != nil {
		return err
	}
	s.accelerate(dt / 2)
	return nil
}

func (s *simulation) accelerate(dt float64) {
	for i, a := range s.acceleration {
		s.speed[i] = s.speed[i].plus(a, dt)
	}
}

// forces computes the acceleration of the rank's stars: it builds the tree of its own stars,
// exchanges what ranks need of each other's, and builds a tree of everything.
func (s *simulation) forces() error {
	if err := s.gatherBoxes(); err != nil {
		return err
	}
	s.local.build(s.boxes[s.c.Rank()], s.stars)
	if err := s.exchange(); err != nil {
		return err
	}
	everything := s.boxes[0]
	for _, b := range s.boxes[1:] {
		everything = everything.union(b)
	}
	s.merged.build(everything, s.stars, s.incoming)
	for i := range s.stars {
		var n int
		s.acceleration[i], s.potential[i], n = s.merged.attraction(s.stars[i].at)
		s.interactions += n
	}
	return nil
}
