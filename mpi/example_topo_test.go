package mpi_test

import (
	"fmt"

	"github.com/muster-mpi/muster/mpi"
)

// Six ranks on a grid of 3 × 2 send their numbers down the columns. Ranks at the edge
// exchange with ProcNull, which does nothing.
func ExampleComm_CartCreate() {
	onRanks(6, func(world *mpi.Comm) error {
		dims, err := mpi.DimsCreate(world.Size(), []int{0, 0}) // 3 × 2
		if err != nil {
			return err
		}
		grid, err := world.CartCreate(dims, nil, mpi.Near)
		if err != nil {
			return err
		}
		above, below, err := grid.Shift(0, 1)
		if err != nil {
			return err
		}
		in := []int{-1}
		if _, err := mpi.Sendrecv(grid.Comm, []int{grid.Rank()}, below, 0, in, above, 0); err != nil {
			return err
		}
		if at := grid.MyCoords(); at[0] == 2 && at[1] == 1 {
			fmt.Printf("at %v from above: %d\n", at, in[0])
		}
		return nil
	})
	// Output: at [2 1] from above: 3
}

// Every rank adds the numbers of its row of the grid.
func ExampleCart_Sub() {
	onRanks(6, func(world *mpi.Comm) error {
		grid, err := world.CartCreate([]int{2, 3}, nil, nil)
		if err != nil {
			return err
		}
		row, err := grid.Sub([]bool{false, true}) // keep the second dimension
		if err != nil {
			return err
		}
		sum := []int{grid.Rank()}
		if err := mpi.Allreduce(row.Comm, sum, sum, mpi.Sum); err != nil {
			return err
		}
		if grid.Rank() == 5 {
			fmt.Println("row of ranks 3, 4, 5:", sum[0])
		}
		return nil
	})
	// Output: row of ranks 3, 4, 5: 12
}

// Each rank sends to the rank of twice its number. Rank 0 passes all edges; the others
// pass none.
func ExampleComm_DistGraphCreate() {
	onRanks(5, func(world *mpi.Comm) error {
		var edges []mpi.Edge
		if world.Rank() == 0 {
			for r := 1; 2*r < world.Size(); r++ {
				edges = append(edges, mpi.Edge{From: r, To: 2 * r})
			}
		}
		graph, err := world.DistGraphCreate(edges, nil)
		if err != nil {
			return err
		}
		if graph.Rank() == 2 {
			sources, dests := graph.Neighborhood()
			fmt.Println("rank 2 receives from", sources, "and sends to", dests)
		}
		return nil
	})
	// Output: rank 2 receives from [1] and sends to [4]
}

// A line of ranks, each with a part of a rod between two ghost cells, which receive the
// border cells of the neighbors. At the ends nothing is received.
func ExampleNeighborAlltoall() {
	onRanks(3, func(world *mpi.Comm) error {
		line, err := world.CartCreate([]int{world.Size()}, nil, mpi.Near)
		if err != nil {
			return err
		}
		left, right := 10*line.Rank()+1, 10*line.Rank()+2
		ghosts := []int{0, 0}
		// The block for the left neighbor first, then the one for the right.
		if err := mpi.NeighborAlltoall(line, []int{left, right}, ghosts); err != nil {
			return err
		}
		all := make([]int, 2*line.Size())
		if err := mpi.Gather(line.Comm, ghosts, all, 0); err != nil {
			return err
		}
		if line.Rank() == 0 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [0 11 2 21 12 0]
}

// A custom Reorder that reverses the ranks. It gets the edges and the nodes, and Crossing
// counts the edges between nodes.
func ExampleReorder() {
	reverse := func(a *mpi.Arrangement) []int {
		order := make([]int, a.Positions)
		for i := range order {
			order[i] = len(a.Nodes) - 1 - i
		}
		fmt.Println("edges:", len(a.Edges), "between nodes:", a.Crossing(order))
		return order
	}
	onRanks(4, func(world *mpi.Comm) error {
		ring, err := world.CartCreate([]int{4}, []bool{true}, reverse)
		if err != nil {
			return err
		}
		if world.Rank() == 3 {
			fmt.Println("rank 3 has place", ring.Rank())
		}
		return nil
	})
	// Output:
	// edges: 8 between nodes: 0
	// rank 3 has place 0
}
