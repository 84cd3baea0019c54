package mpi

// Division of a grid among nodes: the grid is cut into blocks of one shape with as many
// positions as a node has ranks, the blocks are visited back and forth so that each touches
// the one before, and nodes get positions in the order of the visit. If the shape divides
// the grid evenly, every node gets a block; otherwise, pieces of adjacent blocks.

import (
	"cmp"
	"slices"
)

// gridArrangement describes a grid in which every position sends to all its neighbors.
func gridArrangement(dims []int, periods []bool, nodes []int) *Arrangement {
	a := &Arrangement{Positions: 1, Nodes: nodes, Dims: slices.Clone(dims), Periods: make([]bool, len(dims))}
	copy(a.Periods, periods)
	for _, d := range dims {
		a.Positions *= d
	}
	for p := range a.Positions {
		at := gridCoords(dims, p)
		for i := range at {
			for _, step := range [...]int{-1, 1} {
				at[i] += step
				if q := gridPosition(dims, periods, at); q != ProcNull {
					a.Edges = append(a.Edges, Edge{From: p, To: q, Weight: 1})
				}
				at[i] -= step
			}
		}
	}
	return a
}

// gridDivisions returns the divisions by the most promising block shapes.
func gridDivisions(a *Arrangement, parts []part) [][]int {
	const worthTrying = 6
	largest := 0
	for _, t := range parts {
		largest = max(largest, len(t.ranks))
	}
	var shapes [][]int
	blockShapes(a.Dims, largest, nil, func(s []int) { shapes = append(shapes, slices.Clone(s)) })
	cut := func(s []int) int { return blockCut(a, s) }
	slices.SortStableFunc(shapes, func(s, t []int) int { return cmp.Compare(cut(s), cut(t)) })
	var out [][]int
	for _, s := range shapes[:min(worthTrying, len(shapes))] {
		out = append(out, divideByBlocks(a.Dims, s, parts))
	}
	return out
}

// blockShapes calls found for all blocks of n positions that fit into the grid.
func blockShapes(dims []int, n int, shape []int, found func([]int)) {
	i := len(shape)
	if i == len(dims) {
		if n == 1 {
			found(shape)
		}
		return
	}
	for d := 1; d <= min(n, dims[i]); d++ {
		if n%d == 0 {
			blockShapes(dims, n/d, append(shape, d), found)
		}
	}
}

// blockCut counts the edges between blocks of a shape, each pair of positions once.
func blockCut(a *Arrangement, shape []int) int {
	sum := 0
	for i, d := range a.Dims {
		walls := (d+shape[i]-1)/shape[i] - 1
		if walls > 0 && a.Periods[i] {
			walls++
		}
		sum += walls * (a.Positions / d)
	}
	return sum
}

// divideByBlocks visits the grid block by block.
func divideByBlocks(dims, shape []int, parts []part) []int {
	blocks, positions := make([]int, len(dims)), 1
	for i, d := range dims {
		blocks[i] = (d + shape[i] - 1) / shape[i]
		positions *= d
	}
	division := make([]int, positions)
	now, left := 0, len(parts[0].ranks)
	size, at := make([]int, len(dims)), make([]int, len(dims))
	backAndForth(blocks, func(block []int) {
		for i := range size { // blocks at the far edge may be smaller
			size[i] = min(shape[i], dims[i]-block[i]*shape[i])
		}
		backAndForth(size, func(inside []int) {
			for i := range at {
				at[i] = block[i]*shape[i] + inside[i]
			}
			for left == 0 {
				now++
				left = len(parts[now].ranks)
			}
			division[gridPosition(dims, nil, at)] = now
			left--
		})
	})
	return division
}

// backAndForth visits all coordinates of a grid such that each is adjacent to the one
// before: the last dimension runs forward and backward alternately.
func backAndForth(dims []int, visit func([]int)) {
	at, back := make([]int, len(dims)), make([]bool, len(dims))
	for {
		visit(at)
		i := len(dims) - 1
		for ; i >= 0; i-- {
			if !back[i] && at[i] < dims[i]-1 {
				at[i]++
				break
			}
			if back[i] && at[i] > 0 {
				at[i]--
				break
			}
			back[i] = !back[i]
		}
		if i < 0 {
			return
		}
	}
}
