package coll

import "github.com/muster-mpi/muster/internal/sched"

// Reduce and allreduce that know who has arrived. T2 leaves them open (6.7). What
// has come is combined at once, but always in the same pairs: neighbors first, then
// neighbors of these. So the result does not depend on who was late, not even in
// its rounding (MPI-4.1 6.9.1, advice to implementors), operations need not commute,
// and when the last value comes only ⌈log n⌉ combinations are left to do. A place
// for every value is the price, so these are for short data.

// pairs combines n values in the order of their numbers.
type pairs struct {
	f     *flow
	spans []sched.Span
}

// combine gives the place of values from to to-1 together: that of the last.
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

// written reports whether another value is combined into that of number i.
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

// fold receives all of n values but number mine, which lies in own and is not
// written to, and lets the result be in end. from(i) is the rank that sends value i.
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

// kept is the rank's data where nothing that comes is put: in place, a copy.
func (f *flow) kept(s *Shape) sched.Span {
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
	f.fold(s.Size, s.Rank, f.kept(s), s.result(), func(i int) int { return i })
}

func papAllreduce(b *sched.Builder, s *Shape, params []int) {
	b.Ports(params[0])
	f := &flow{Builder: b}
	own := f.kept(s)
	for i := 1; i < s.Size; i++ {
		f.sendUnordered(around(s.Rank+i, s.Size), own)
	}
	f.fold(s.Size, s.Rank, own, s.result(), func(i int) int { return i })
}

// foldTeams is the nodes, or, if order matters and a node's ranks are not
// neighbors, the runs of neighbors in them, in the order of their first ranks.
func (s *Shape) foldTeams() teams {
	if s.Commutes || s.Nodes == nil || s.Nodes.inOrder {
		return s.teams()
	}
	var t teams
	for r, node := range s.Nodes.Node {
		if r == 0 || node != s.Nodes.Node[r-1] {
			t = append(t, nil)
		}
		t[len(t)-1] = append(t[len(t)-1], r)
	}
	return t
}

// foldTeam combines the values of a team at its master, and gives the place.
func (f *flow) foldTeam(s *Shape, team []int) sched.Span {
	own := f.kept(s)
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

// papShmReduce has the root as the master of its own node.
func papShmReduce(b *sched.Builder, s *Shape, _ []int) {
	f, t := &flow{Builder: b}, s.foldTeams()
	mine := t.of(s.Rank)
	if master := t.master(mine, s.Root); s.Rank != master {
		f.send(master, s.data())
		return
	}
	value := f.foldTeam(s, t[mine])
	f.Step(1)
	if s.Rank != s.Root {
		f.send(s.Root, value)
		return
	}
	f.fold(len(t), mine, value, s.result(), func(i int) int { return t.master(i, s.Root) })
}

func papShmAllreduce(b *sched.Builder, s *Shape, params []int) {
	b.Ports(params[0])
	f, t := &flow{Builder: b}, s.foldTeams()
	mine := t.of(s.Rank)
	master := t.master(mine, -1)
	if s.Rank != master {
		f.send(master, s.data())
		f.Step(2)
		f.recv(master, s.result())
		return
	}
	value := f.foldTeam(s, t[mine])
	f.Step(1)
	for i := 1; i < len(t); i++ {
		f.sendUnordered(t.master(around(mine+i, len(t)), -1), value)
	}
	f.fold(len(t), mine, value, s.result(), func(i int) int { return t.master(i, -1) })
	f.Step(2)
	for _, rank := range t[mine] {
		if rank != s.Rank {
			f.send(rank, s.result())
		}
	}
}

// papLevelsCost is the time until the masters, or the root, have everything.
func papLevelsCost(s *Shape, m *Model, ports int) float64 {
	bytes := float64(s.Bytes)
	most, nodes := s.mostInNode(), s.nodeCount()
	return m.atLeast(m.together(most-1, bytes) + m.window(nodes-1, ports, bytes) + m.Reduce*bytes*float64(log(most, 2)+nodes-1))
}
