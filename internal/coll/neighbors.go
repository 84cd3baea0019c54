package coll

import "github.com/muster-mpi/muster/internal/sched"

// Neighbors: a rank sends block i of In to Dests[i] and gets block j of Out from
// Sources[j] (MPI-4.1 8.6). The lists are a rank's own, and so are the lengths, so
// nothing but the number of ranks is known to all, and there is one algorithm.
//
// A rank may stand in a list several times, itself too. Then the n-th block that
// it is sent is the n-th that it gets: the rule of MPI for graphs, whose edges the
// user has put in order. Cartesian neighbors have another rule: what goes down a
// dimension comes in from above, also when both are the same rank, as in a periodic
// dimension of one or two. Callers get it by giving the destinations of each
// dimension upper before lower, with Send.Offs to match, and the sources lower
// before upper.

func neighborsAlgorithms() []Algorithm {
	return []Algorithm{{
		Kind: Neighbors, Name: "direct", Ref: "MPI-4.1 8.6; T2 3.4.4 for the k ports",
		About:  "Every rank sends its blocks straight to its neighbors, k at a time, with all receives posted.",
		Needs:  Needs{NotInPlace: true},
		Params: []Param{portsParam(8, 1, 2, 4)},
		// A rank does not know how many neighbors others have. Fewer ports can
		// only be slower, so the most is the choice.
		Cost: func(s *Shape, m *Model, params []int) float64 {
			return m.Startup * float64(1+8/params[0])
		},
		Build: directNeighbors,
	}}
}

// directNeighbors posts all receives at once: neighbors need not come in an
// order that suits anybody else, so a receive that waited for another could wait
// for ever.
func directNeighbors(b *sched.Builder, s *Shape, params []int) {
	var own []int // blocks that go from this rank to itself
	var sends []sched.ID
	for i, to := range s.Dests {
		if to == s.Rank {
			own = append(own, i)
			continue
		}
		if id := sendSome(b, to, s.share(i), back(sends, params[0])); id != sched.None {
			sends = append(sends, id)
		}
	}
	for j, from := range s.Sources {
		if from != s.Rank {
			recvSome(b, from, s.gathered(j))
			continue
		}
		if len(own) == 0 {
			b.Fail("rank %d has itself more often as a source than as a destination", s.Rank)
			return
		}
		b.Copy(s.gathered(j), s.share(own[0]))
		own = own[1:]
	}
	if len(own) > 0 {
		b.Fail("rank %d has itself more often as a destination than as a source", s.Rank)
	}
}
