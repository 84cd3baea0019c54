package coll

import "github.com/muster-mpi/muster/internal/sched"

// Barriers (MPI-4.1 section 6.3). Messages are empty; only dependencies matter. No rank
// may leave before all have entered, so a rank sends in a round only after it has
// received the messages of all rounds before.

func barrierAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Barrier, Name: "dissemination", Ref: "Hensgen, Finkel, Manber 1988",
			About: "In round i every rank notifies the rank 2^i above it; after log2 N rounds every rank is notified, directly or indirectly, by all.",
			Cost:  func(s *Shape, m *Model, _ []int) float64 { return disseminationCost(s, m, 1) },
			Build: func(b *sched.Builder, s *Shape, _ []int) { dissemination(b, s, 1) },
		},
		{
			Kind: Barrier, Name: "k-dissemination", Ref: "Hoefler, Mehlan, Mietke, Rehm 2006",
			About:  "Dissemination with k messages a round: log N rounds to the base k+1.",
			Params: []Param{portsParam(3, 2, 7, 15)},
			Cost:   func(s *Shape, m *Model, p []int) float64 { return disseminationCost(s, m, p[0]) },
			Build:  func(b *sched.Builder, s *Shape, p []int) { dissemination(b, s, p[0]) },
		},
		{
			Kind: Barrier, Name: "tree", Ref: "Mellor-Crummey, Scott 1991",
			About:  "Arrivals are gathered up a tree and the release is sent down: the fewest messages.",
			Params: []Param{radixParam(2, 4, 8, 16)},
			Cost: func(s *Shape, m *Model, p []int) float64 {
				return m.atLeast(2 * knomialCost(s.Size, m, p[0], 0))
			},
			Build: treeBarrier,
		},
	}
}

// atLeast returns a cost of at least one start-up. Only a single rank could need less,
// and it has no choice to make.
func (m *Model) atLeast(cost float64) float64 { return max(cost, m.Startup) }

func disseminationCost(s *Shape, m *Model, k int) float64 {
	cost := 0.0
	for reach := 1; reach < s.Size; reach *= k + 1 {
		cost += m.together(min(k, (s.Size-1)/reach), 0)
	}
	return m.atLeast(cost)
}

// dissemination builds a barrier: after round i a rank has been notified, directly or
// indirectly, by the (k+1)^(i+1) - 1 ranks below it.
func dissemination(b *sched.Builder, s *Shape, k int) {
	if k < 1 {
		b.Fail("barrier: %d ports; there must be at least one", k)
		return
	}
	disseminate(b, s, k, nil)
}

// disseminate builds a dissemination that begins when the operations in heard have
// completed. It returns the operations that must complete before all ranks are known to
// have entered.
func disseminate(b *sched.Builder, s *Shape, k int, heard []sched.ID) []sched.ID {
	for reach, step := 1, 0; reach < s.Size; reach, step = reach*(k+1), step+1 {
		b.Step(step)
		before := len(heard)
		for i := 1; i <= k && i*reach < s.Size; i++ {
			b.Send(wrap(s.Rank+i*reach, s.Size), sched.Span{Buf: sched.Tmp}, heard[:before]...)
		}
		for i := 1; i <= k && i*reach < s.Size; i++ {
			heard = append(heard, b.Recv(wrap(s.Rank-i*reach, s.Size), sched.Span{Buf: sched.Tmp}))
		}
	}
	return heard
}

func treeBarrier(b *sched.Builder, s *Shape, params []int) {
	none := sched.Span{Buf: sched.Tmp}
	t, ok := knomial(b, s.Rank, s.Size, params[0])
	if !ok {
		return
	}
	rounds := log(s.Size, params[0])
	var arrived []sched.ID
	for i := len(t.children) - 1; i >= 0; i-- {
		b.Step(rounds - 1 - t.children[i].step)
		arrived = append(arrived, b.Recv(t.children[i].rank, none))
	}
	if t.parent >= 0 {
		b.Step(rounds - 1 - t.step)
		b.Send(t.parent, none, arrived...)
		b.Step(rounds + t.step)
		arrived = append(arrived[:0], b.Recv(t.parent, none))
	}
	for _, c := range t.children {
		b.Step(rounds + c.step)
		b.Send(c.rank, none, arrived...)
	}
}
