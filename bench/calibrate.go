package bench

// Measurements for a machine file of the simulator (package sim): round trips and
// exchanges between two ranks, of one node and of two, alone and with all ranks at a time.

import (
	"slices"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/mpi"
)

// Calibration is what Calibrate measures. Times are in µs, each the shortest of several
// measurements: what disturbs a machine adds to its times.
type Calibration struct {
	Near, Far []CalibrationPoint // nil if no two ranks are so related
	// Ring is the time of a hop of 8 bytes from rank to rank, all others waiting.
	Ring float64
	// Copy and Reduce are per byte.
	Copy, Reduce float64
}

// CalibrationPoint is one size.
type CalibrationPoint struct {
	Bytes int
	// Half is half a round trip between two ranks, with the others in a receive.
	Half float64
	// Processor is the processor time that a rank spends on a message at one end, while
	// all ranks exchange messages at the same time.
	Processor float64
}

// Calibrate measures with the ranks of c; node[r] is the node of rank r. It is collective.
func Calibrate(c *mpi.Comm, node []int, sizes []int, rounds int) (Calibration, error) {
	var k Calibration
	near, far := relatedPairs(node, true), relatedPairs(node, false)
	var err error
	if k.Near, err = calibrateLevel(c, near, sizes, rounds); err != nil {
		return k, err
	}
	if k.Far, err = calibrateLevel(c, far, sizes, rounds); err != nil {
		return k, err
	}
	if k.Ring, err = ringHop(c, rounds); err != nil {
		return k, err
	}
	k.Copy, k.Reduce = localCosts()
	return k, c.Barrier()
}

// relatedPairs returns a peer for each rank, of the same node or of another, or -1.
func relatedPairs(node []int, same bool) []int {
	peer := make([]int, len(node))
	for r := range peer {
		peer[r] = -1
	}
	for r := range node {
		for p := r + 1; p < len(node) && peer[r] < 0; p++ {
			if peer[p] < 0 && (node[p] == node[r]) == same {
				peer[r], peer[p] = p, r
			}
		}
	}
	return peer
}

func calibrateLevel(c *mpi.Comm, peer, sizes []int, rounds int) ([]CalibrationPoint, error) {
	first := slices.IndexFunc(peer, func(p int) bool { return p >= 0 })
	if first < 0 {
		return nil, nil
	}
	var points []CalibrationPoint
	for _, size := range sizes {
		point := CalibrationPoint{Bytes: size}
		var half, busy []float64
		for range rounds {
			t, err := measureAlone(c, first, peer[first], size)
			if err != nil {
				return nil, err
			}
			half = append(half, t)
			if t, err = together(c, peer[c.Rank()], size); err != nil {
				return nil, err
			}
			busy = append(busy, t)
		}
		point.Half, point.Processor = slices.Min(half), slices.Min(busy)
		points = append(points, point)
	}
	return points, nil
}

func calibrationCount(size int) int { return max(min(200, 4<<20/max(size, 1)), 4) }

// measureAlone returns half a round trip between two ranks, the same at all ranks.
func measureAlone(c *mpi.Comm, a, b, size int) (float64, error) {
	if err := c.Barrier(); err != nil {
		return 0, err
	}
	buf := make([]byte, size)
	n := calibrationCount(size)
	us := 0.0
	if me := c.Rank(); me == a || me == b {
		peer := a + b - me
		start := time.Now()
		for i := range 2 * n {
			if i == n/2*2 {
				start = time.Now()
			}
			if err := sendOrReceive(c, buf, peer, (i%2 == 0) == (me == a)); err != nil {
				return 0, err
			}
		}
		us = micros(time.Since(start)) / float64(2*n-n/2*2)
	}
	return mpi.BcastValue(c, us, a)
}

func sendOrReceive(c *mpi.Comm, buf []byte, peer int, sends bool) error {
	if sends {
		return mpi.Send(c, buf, peer, pingTag)
	}
	_, err := mpi.Recv(c, buf, peer, pingTag)
	return err
}

// together returns the processor time of a rank for one end of a message while all ranks
// that have a peer exchange messages with it: the mean over these ranks, the same at all.
func together(c *mpi.Comm, peer, size int) (float64, error) {
	const window = 2
	in, out := make([]byte, size*window), make([]byte, size)
	n := max(calibrationCount(size)/window, 1)
	reqs := make([]mpi.Request, 0, 2*window)
	if err := c.Barrier(); err != nil {
		return 0, err
	}
	before, _ := cputime.Used()
	for range n {
		if peer < 0 {
			break
		}
		reqs = reqs[:0]
		for i := range window {
			reqs = append(reqs, mpi.Irecv(c, in[i*size:(i+1)*size], peer, pingTag))
		}
		for range window {
			reqs = append(reqs, mpi.Isend(c, out, peer, pingTag))
		}
		if err := mpi.WaitAll(reqs...); err != nil {
			return 0, err
		}
	}
	after, _ := cputime.Used()
	mine, sum := []float64{0, 0}, []float64{0, 0}
	if peer >= 0 {
		mine[0], mine[1] = micros(after-before)/float64(2*n*window), 1
	}
	err := mpi.Allreduce(c, mine, sum, mpi.Sum)
	return sum[0] / sum[1], err
}

// ringHop returns the time of a hop of a message that visits one rank after the other.
func ringHop(c *mpi.Comm, rounds int) (float64, error) {
	const laps = 20
	me, n := c.Rank(), c.Size()
	buf := make([]byte, 8)
	var hops []float64
	for range rounds {
		if err := c.Barrier(); err != nil {
			return 0, err
		}
		start := time.Now()
		for range laps {
			for _, sends := range []bool{me == 0, me != 0} {
				peer := (me + n - 1) % n
				if sends {
					peer = (me + 1) % n
				}
				if err := sendOrReceive(c, buf, peer, sends); err != nil {
					return 0, err
				}
			}
		}
		hops = append(hops, micros(time.Since(start))/float64(laps*n))
	}
	return mpi.BcastValue(c, slices.Min(hops), 0)
}

// localCosts returns the time per byte of a copy and of a reduction of float64.
func localCosts() (copying, reducing float64) {
	const n = 64 << 10
	a, b := make([]float64, n/8), make([]float64, n/8)
	x, y := make([]byte, n), make([]byte, n)
	var copies, reductions []float64
	for range 20 {
		start := time.Now()
		copy(x, y)
		copies = append(copies, micros(time.Since(start))/n)
		start = time.Now()
		for i := range a {
			a[i] += b[i]
		}
		reductions = append(reductions, micros(time.Since(start))/n)
	}
	return slices.Min(copies), slices.Min(reductions)
}
