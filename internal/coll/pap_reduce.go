package coll

import "github.com/muster-mpi/muster/internal/sched"

// Arrival-aware reduce and allreduce. T2 leaves them open (6.7). Values are combined as
// they arrive, but always in the same pairs: adjacent ranks first, then adjacent pairs.
// The result therefore does not depend on the order of arrival, not even in its rounding
// (MPI-4.1 6.9.1, advice to implementors), operations need not commute, and when the
// last value arrives only ⌈log n⌉ combinations are left. Every value needs its own
// scratch, so these algorithms are for short data.

func papReduceAlgorithms() []Algorithm {
	return []Algorithm{
		{
			Kind: Reduce, Name: papDirect, Ref: papRef, Rooted: true,
			About: "All ranks send to the root, which combines adjacent values as soon as both have arrived, always in the same pairs: the result does not depend on the order of arrival.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				bytes := float64(s.Bytes)
				t := m.window(s.Size-1, s.Size, bytes)
				if m.TimeSlices { // the senders' half of the messages is over before the root runs
					t -= m.Message * float64(s.Size-1) / 2
				}
				return m.atLeast(t + m.Reduce*bytes*float64(s.Size-1))
			},
			Build: papReduce,
		},
		{
			Kind: Reduce, Name: papShmDirect, Ref: papRef, Leaders: true,
			About: "The same in two levels: node leaders combine the values of their nodes, and the root those of the leaders.",
			Cost: func(s *Shape, m *Model, _ []int) float64 {
				return papLevelsCost(s, m, s.nodeCount())
			},
			Build: papShmReduce,
		},
		{
			Kind: Allreduce, Name: papDirect, Ref: papRef, ByName: true,
			About:  "All ranks send to all, arrived ones first, k at a time; each combines all data in the same pairs.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				bytes := float64(s.Bytes)
				return m.atLeast(m.window(s.Size-1, params[0], bytes) + m.Reduce*bytes*float64(s.Size-1))
			},
			Build: papAllreduce,
		},
		{
			Kind: Allreduce, Name: papShmDirect, Ref: papRef, Leaders: true,
			About:  "Node leaders combine the values of their nodes, exchange them among those that have arrived, k at a time, and forward the result.",
			Params: []Param{portsParam(4, 1, 2, 8, 16)},
			Cost: func(s *Shape, m *Model, params []int) float64 {
				near := m.inNode()
				return papLevelsCost(s, m, params[0]) + near.together(s.mostInNode()-1, float64(s.Bytes))
			},
			Build: papShmAllreduce,
		},
	}
}

// pairs combines n values in order.
type pairs struct {
	f     *flow
	spans []sched.Span
}

// combine combines values from to to-1 and returns the span of the result: that of the
// last value.
func (p *pairs) combine(from, to int) sched.Span {
	if to-from == 1 {
		return p.spans[from]
	}
	middle := halfOf(from, to)
	left, right := p.combine(from, middle), p.combine(middle, to)
	p.f.reduce(right, left)
	return right
}

func halfOf(from, to int) int { return from + (to-from+1)/2 }

// written reports whether another value is combined into value i.
func written(i, from, to int) bool {
	for to-from > 1 {
		if i == to-1 {
			return true
		}
		if middle := halfOf(from, to); i < middle {
			to = middle
		} else {
			from = middle
		}
	}
	return false
}

// fold receives all of n values except number mine, which is in own and is not
// modified, and leaves the result in end. from(i) is the rank that sends value i.
func (f *flow) fold(n, mine int, own, end sched.Span, from func(i int) int) {
	p := pairs{f, make([]sched.Span, n)}
	for i := range p.spans {
		switch {
		case i == n-1:
			p.spans[i] = end
		case i == mine && !written(i, 0, n):
			p.spans[i] = own
		default:
			p.spans[i] = f.Tmp(own.Len)
		}
		if i == mine {
			f.copy(p.spans[i], own)
		} else {
			f.recv(from(i), p.spans[i])
		}
	}
	p.combine(0, n)
}

// keepData returns the rank's data in memory that no receive overwrites: in place, a copy.
func (f *flow) keepData(s *Shape) sched.Span {
	if !s.InPlace || s.Bytes == 0 {
		return s.data()
	}
	copied := f.Tmp(s.Bytes)
	f.copy(copied, s.data())
	return copied
}

func papReduce(b *sched.Builder, s *Shape, _ []int) {
	f := &flow{Builder: b}
	if s.Rank != s.Root {
		f.send(s.Root, s.data())
		return
	}
	f.fold(s.Size, s.Rank, f.keepData(s), s.result(), func(i int) int { return i })
}

func papAllreduce(b *sched.Builder, s *Shape, params []int) {
	b.Ports(params[0])
	f := &flow{Builder: b}
	own := f.keepData(s)
	for i := 1; i < s.Size; i++ {
		f.sendUnordered(wrap(s.Rank+i, s.Size), own)
	}
	f.fold(s.Size, s.Rank, own, s.result(), func(i int) int { return i })
}

// foldTeams returns the nodes, or, if order matters and a node's ranks are not
// consecutive, the runs of consecutive ranks in them, sorted by first rank.
func (s *Shape) foldTeams() teams {
	if s.Commutes || s.Nodes == nil || s.Nodes.inOrder() {
		return s.teams()
	}
	var t teams
	for r := range s.Size {
		if r == 0 || s.Nodes.NodeOf(r) != s.Nodes.NodeOf(r-1) {
			t = append(t, nil)
		}
		t[len(t)-1] = append(t[len(t)-1], r)
	}
	return t
}

// foldTeam combines the values of a team at its leader, and returns the span of the
// result.
func (f *flow) foldTeam(s *Shape, team []int) sched.Span {
	own := f.keepData(s)
	if len(team) == 1 {
		return own
	}
	mine := 0
	for i, r := range team {
		if r == s.Rank {
			mine = i
		}
	}
	end := f.Tmp(s.Bytes)
	f.fold(len(team), mine, own, end, func(i int) int { return team[i] })
	return end
}

// papShmReduce uses the root as the leader of its node.
func papShmReduce(b *sched.Builder, s *Shape, _ []int) {
	f, t := &flow{Builder: b}, s.foldTeams()
	mine := t.teamOf(s.Rank)
	if leader := t.leader(mine, s.Root); s.Rank != leader {
		f.send(leader, s.data())
		return
	}
	value := f.foldTeam(s, t[mine])
	f.Step(1)
	if s.Rank != s.Root {
		f.send(s.Root, value)
		return
	}
	f.fold(len(t), mine, value, s.result(), func(i int) int { return t.leader(i, s.Root) })
}

func papShmAllreduce(b *sched.Builder, s *Shape, params []int) {
	b.Ports(params[0])
	f, t := &flow{Builder: b}, s.foldTeams()
	mine := t.teamOf(s.Rank)
	leader := t.leader(mine, -1)
	if s.Rank != leader {
		f.send(leader, s.data())
		f.Step(2)
		f.recv(leader, s.result())
		return
	}
	value := f.foldTeam(s, t[mine])
	f.Step(1)
	for i := 1; i < len(t); i++ {
		f.sendUnordered(t.leader(wrap(mine+i, len(t)), -1), value)
	}
	f.fold(len(t), mine, value, s.result(), func(i int) int { return t.leader(i, -1) })
	f.Step(2)
	for _, rank := range t[mine] {
		if rank != s.Rank {
			f.send(rank, s.result())
		}
	}
}

// papLevelsCost returns the time until the leaders, or the root, have all values.
func papLevelsCost(s *Shape, m *Model, ports int) float64 {
	bytes := float64(s.Bytes)
	most, nodes, near := s.mostInNode(), s.nodeCount(), m.inNode()
	return m.atLeast(near.together(most-1, bytes) + m.window(nodes-1, ports, bytes) + m.Reduce*bytes*float64(log(most, 2)+nodes-1))
}
