package coll

import "github.com/muster-mpi/muster/internal/sched"

// Neighbors: a rank sends block i of In to Dests[i] and receives block j of Out from
// Sources[j] (MPI-4.1 8.6). The lists and the lengths differ between ranks, so only the
// number of ranks is known to all, and there is one algorithm.
//
// A list may contain a rank several times, also the rank itself. The n-th block sent to
// a rank is then the n-th received from it: MPI's rule for graphs, whose edges are
// ordered by the user. Cartesian neighbors have another rule: what is sent down a
// dimension is received from above, even if both neighbors are the same rank, as in a
// periodic dimension of one or two. Callers implement it by listing the destinations of
// each dimension upper before lower, with matching Send.Offs, and the sources lower
// before upper.

func neighborsAlgorithms() []Algorithm {
	return []Algorithm{{
		Kind: Neighbors, Name: "direct", Ref: "MPI-4.1 8.6; T2 3.4.4 for the k ports",
		About:  "Every rank sends its blocks directly to its neighbors, k at a time, with all receives posted.",
		Needs:  Needs{NotInPlace: true},
		Params: []Param{portsParam(8, 1, 2, 4)},
		// A rank does not know the number of neighbors of others. Fewer ports can only
		// be slower, so the largest value is chosen.
		Cost: func(s *Shape, m *Model, params []int) float64 {
			return m.Startup * float64(1+8/params[0])
		},
		Build: directNeighbors,
	}}
}

// directNeighbors posts all receives at once: neighbors may send in any order, so a
// receive that waited for another could deadlock.
func directNeighbors(b *sched.Builder, s *Shape, params []int) {
	var own []int // blocks from this rank to itself
	var sends []sched.ID
	for i, to := range s.Dests {
		if to == s.Rank {
			own = append(own, i)
			continue
		}
		if id := sendSome(b, to, s.share(i), kthLast(sends, params[0])); id != sched.None {
			sends = append(sends, id)
		}
	}
	for j, from := range s.Sources {
		if from != s.Rank {
			recvSome(b, from, s.outBlock(j))
			continue
		}
		if len(own) == 0 {
			b.Fail("rank %d is its own source more often than its own destination", s.Rank)
			return
		}
		b.Copy(s.outBlock(j), s.share(own[0]))
		own = own[1:]
	}
	if len(own) > 0 {
		b.Fail("rank %d is its own destination more often than its own source", s.Rank)
	}
}
