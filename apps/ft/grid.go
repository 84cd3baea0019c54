package ft

import (
	"math"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// grid is a rank's part of the problem. An array has one of three orders, x being the
// fastest index in all of them:
//
//	planes   [z of this rank][y][x]                   complete in x and y
//	blocks   [rank][z of this rank][y of that rank][x]  planes, cut for Alltoall
//	columns  [z][y of this rank][x]                   complete in z
//
// Alltoall makes columns of blocks, because the blocks of all ranks in the order of their
// ranks are in the order of z, and blocks of columns. The transform of y reads or writes
// blocks directly, so that the grid is never copied for a transposition alone.
type grid struct {
	c          *mpi.Comm
	clock      *npb.Clock
	nx, ny, nz int
	planes     int // of this rank
	rows       int // of this rank in columns

	state      []complex128 // columns: the solution in the frequency domain
	work, send []complex128
	sum        []complex128

	fftX, fftY, fftZ [2]*transform // forward and inverse
	decay            [3][]float64  // by which an amplitude shrinks in a step, for x, y and z
}

// Indices of the transforms.
const (
	direct  = 0
	inverse = 1
)

func newGrid(c *mpi.Comm, p params) *grid {
	g := &grid{c: c, nx: p.nx, ny: p.ny, nz: p.nz, planes: p.nz / c.Size(), rows: p.ny / c.Size()}
	n := g.planes * g.ny * g.nx
	g.state, g.work, g.send = make([]complex128, n), make([]complex128, n), make([]complex128, n)
	g.sum = make([]complex128, 1)
	for i := range g.fftX {
		g.fftX[i] = newTransform(p.nx, i == inverse)
		g.fftY[i] = newTransform(p.ny, i == inverse)
		g.fftZ[i] = newTransform(p.nz, i == inverse)
	}
	for i, n := range []int{p.nx, p.ny, p.nz} {
		g.decay[i] = make([]float64, n)
	}
	return g
}

// setup computes the initial state, random numbers in the order of the whole grid, and the
// decay of each frequency: exp(-4απ²|k|²) in a step, the product of three factors. The upper
// half of the indices stands for the negative frequencies.
func (g *grid) setup() {
	random := npb.Random(npb.Seed)
	random.Skip(2 * g.nx * g.ny * g.planes * g.c.Rank())
	for i := range g.work {
		re := random.Next()
		g.work[i] = complex(re, random.Next())
	}
	for _, decay := range g.decay {
		n := len(decay)
		for i := range decay {
			k := (i+n/2)%n - n/2
			decay[i] = math.Exp(-4 * alpha * math.Pi * math.Pi * float64(k*k))
		}
	}
}

// forward transforms work, in planes, into state.
func (g *grid) forward() error {
	for z := range g.planes {
		plane := g.work[z*g.ny*g.nx:][:g.ny*g.nx]
		for y := 0; y < g.ny; y += batch {
			g.transformRows(g.fftX[direct], plane[y*g.nx:])
		}
		for x := 0; x < g.nx; x += batch {
			lines := g.fftY[direct].lines
			for y := range g.ny {
				copy(lines[y*batch:][:batch], plane[y*g.nx+x:][:batch])
			}
			lines = g.fftY[direct].run()
			for y := range g.ny {
				copy(g.send[g.block(z, y)+x:][:batch], lines[y*batch:][:batch])
			}
		}
	}
	if err := g.exchange(g.send, g.state); err != nil {
		return err
	}
	stride := g.rows * g.nx
	for x := 0; x < stride; x += batch {
		lines := g.fftZ[direct].lines
		for z := range g.nz {
			copy(lines[z*batch:][:batch], g.state[z*stride+x:][:batch])
		}
		lines = g.fftZ[direct].run()
		for z := range g.nz {
			copy(g.state[z*stride+x:][:batch], lines[z*batch:][:batch])
		}
	}
	return nil
}

// step advances state by one time step, and transforms it back into work, in planes.
func (g *grid) step() error {
	stride := g.rows * g.nx
	for x := 0; x < stride; x += batch {
		g.evolve(x, g.fftZ[inverse].lines)
		lines := g.fftZ[inverse].run()
		for z := range g.nz {
			copy(g.send[z*stride+x:][:batch], lines[z*batch:][:batch])
		}
	}
	if err := g.exchange(g.send, g.work); err != nil {
		return err
	}
	for z := range g.planes {
		plane := g.send[z*g.ny*g.nx:][:g.ny*g.nx]
		for x := 0; x < g.nx; x += batch {
			lines := g.fftY[inverse].lines
			for y := range g.ny {
				copy(lines[y*batch:][:batch], g.work[g.block(z, y)+x:][:batch])
			}
			lines = g.fftY[inverse].run()
			for y := range g.ny {
				copy(plane[y*g.nx+x:][:batch], lines[y*batch:][:batch])
			}
		}
		for y := 0; y < g.ny; y += batch {
			g.transformRows(g.fftX[inverse], plane[y*g.nx:])
		}
	}
	g.work, g.send = g.send, g.work
	return nil
}

// evolve multiplies the amplitudes of some columns by their decay, and copies them to lines.
func (g *grid) evolve(x int, lines []complex128) {
	stride := g.rows * g.nx
	y := g.c.Rank()*g.rows + x/g.nx
	var decay [batch]float64
	for i := range decay {
		decay[i] = g.decay[1][y] * g.decay[0][x%g.nx+i]
	}
	for z := range g.nz {
		state, line := g.state[z*stride+x:][:batch], lines[z*batch:][:batch]
		dz := g.decay[2][z]
		for i, v := range state {
			d := decay[i&(batch-1)] * dz
			v = complex(real(v)*d, imag(v)*d)
			state[i], line[i] = v, v
		}
	}
}

// transformRows transforms the first rows of x, as many as a batch has.
func (g *grid) transformRows(t *transform, rows []complex128) {
	nx := t.n
	r0, r1, r2, r3 := rows[:nx], rows[nx:][:nx], rows[2*nx:][:nx], rows[3*nx:][:nx]
	lines := t.lines
	for x := range r0 {
		l := lines[x*batch:][:batch]
		l[0], l[1], l[2], l[3] = r0[x], r1[x], r2[x], r3[x]
	}
	lines = t.run()
	for x := range r0 {
		l := lines[x*batch:][:batch]
		r0[x], r1[x], r2[x], r3[x] = l[0], l[1], l[2], l[3]
	}
}

// block returns the offset of a row in blocks.
func (g *grid) block(z, y int) int {
	rank, row := y/g.rows, y%g.rows
	return ((rank*g.planes+z)*g.rows + row) * g.nx
}

// exchange sends each rank its block.
func (g *grid) exchange(from, to []complex128) error {
	g.clock.EnterMPI()
	defer g.clock.LeaveMPI()
	return mpi.Alltoall(g.c, from, to)
}

// checksum adds some points of work, in planes, over all ranks.
func (g *grid) checksum() (complex128, error) {
	var sum complex128
	first := g.c.Rank() * g.planes
	for j := 1; j <= points; j++ {
		x, y, z := j%g.nx, 3*j%g.ny, 5*j%g.nz
		if z >= first && z < first+g.planes {
			sum += g.work[((z-first)*g.ny+y)*g.nx+x]
		}
	}
	g.sum[0] = sum / complex(float64(g.nx*g.ny*g.nz), 0)
	g.clock.EnterMPI()
	defer g.clock.LeaveMPI()
	err := mpi.Allreduce(g.c, g.sum, g.sum, mpi.Sum)
	return g.sum[0], err
}
