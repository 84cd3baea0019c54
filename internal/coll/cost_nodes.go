package coll

// Costs on several nodes. All ranks of a node share its cables, and often its cores;
// messages within a node use neither.

// everywhere is the share of the bytes that leaves a node if a rank sends to all others
// alike.
func everywhere(s *Shape) float64 {
	most := s.Nodes.most
	return float64(s.Size-most) / float64(max(s.Size-1, 1))
}

// farByRounds returns the share of the bytes that leaves a node in an algorithm with
// rounds, in each of which a rank sends bytes to the rank at a distance. In pairs, the
// ranks of an aligned block exchange with each other.
func farByRounds(s *Shape, pairs bool, rounds func(add func(distance int, bytes float64))) float64 {
	if !s.Nodes.inOrder() { // near ranks may be on other nodes
		return everywhere(s)
	}
	far, all, most := 0.0, 0.0, s.Nodes.most
	aligned := pairs && power(most) == most
	rounds(func(distance int, bytes float64) {
		all += bytes
		switch {
		case distance >= most:
			far += bytes
		case !aligned:
			far += bytes * float64(distance) / float64(most)
		}
	})
	if all == 0 {
		return everywhere(s)
	}
	return far / all
}

// doublingFar is the share of algorithms in which pairs exchange the same bytes at
// distance 1, 2, 4 …, treeFar of those in which one rank of a pair sends and is done,
// halvingFar of those that exchange a half, a quarter and so on, and circulantFar of
// those that begin with the largest distance.
func doublingFar(s *Shape, _ []int) float64 {
	return farByRounds(s, true, func(add func(int, float64)) {
		for d := 1; d < s.Size; d *= 2 {
			add(d, 1)
		}
	})
}

func treeFar(s *Shape, params []int) float64 {
	return doublingFar(s, params) / float64(s.Nodes.most)
}

// scanFar is that of a prefix reduction, in which the last ranks of a node send to the
// next node in every round.
func scanFar(s *Shape, _ []int) float64 {
	return farByRounds(s, false, func(add func(int, float64)) {
		for d := 1; d < s.Size; d *= 2 {
			add(d, 1)
		}
	})
}

func halvingFar(s *Shape, _ []int) float64 {
	return farByRounds(s, true, func(add func(int, float64)) {
		for d := 1; d < s.Size; d *= 2 {
			add(d, 1/float64(2*d))
		}
	})
}

func circulantFar(s *Shape, _ []int) float64 {
	counts := circulantRounds(s.Size)
	return farByRounds(s, false, func(add func(int, float64)) {
		for i, keep := range counts[1:] {
			add(keep, float64(counts[i]-keep))
		}
	})
}

// costPlanned returns the cost of a call and its share of the cost of the plan.
func (a *Algorithm) costPlanned(s *Shape, m *Model, params []int) float64 {
	cost := a.costOn(s, m, params)
	if a.Plan != nil {
		cost += a.Plan(s, params) / plannedCalls
	}
	return cost
}

// costOn returns the cost if ranks share nodes. In algorithms that are not node-aware all
// ranks of a node send at the same time over shared cables, except for messages within
// the node. A gather or scatter, or what is as simple, is limited by the cable of the root.
func (a *Algorithm) costOn(s *Shape, m *Model, params []int) float64 {
	switch {
	case s.Nodes == nil:
		return a.Cost(s, m, params)
	case s.Kind == Gather || s.Kind == Scatter || a.Rooted:
		root := *m
		root.rooted = true
		if !a.Needs.Nodes { // its peers use all cables, those of leaders the same one
			root.Ports = m.cables()
		}
		if far := everywhere(s); !a.Needs.Nodes && m.Cable > 0 {
			root.PerByte = far*m.PerByte + (1-far)*m.inNode().PerByte
			root.Cable *= far
		}
		return a.Cost(s, &root, params)
	case a.Needs.Nodes || a.Leaders:
		return a.Cost(s, m, params)
	case a.Along && s.Nodes.inOrder():
		along := *m
		along.hop = m
		if m.TimeSlices { // all ranks of a node run for each message, half of them while it is on the cable
			along.Startup += float64(s.Nodes.most-1) * m.inNode().Startup / 2
		}
		return a.Cost(s, &along, params)
	}
	far := everywhere(s)
	if a.Far != nil {
		far = a.Far(s, params)
	}
	shared := m.amongNodes(s.Nodes.most, far)
	return a.Cost(s, &shared, params)
}

// amongNodes returns the model of messages that a number of ranks of every node send at the
// same time, if a share of their bytes leaves the node.
func (m *Model) amongNodes(ranks int, far float64) Model {
	shared, n := *m, float64(ranks)
	if m.TimeSlices {
		shared.Startup *= n
		shared.Message *= n
	}
	near := m.inNode()
	if m.Cable == 0 {
		shared.PerByte = far*n*m.PerByte + (1-far)*near.PerByte
		return shared
	}
	shared.PerByte = far*m.PerByte + (1-far)*near.PerByte
	if m.TimeSlices {
		shared.PerByte *= n
	}
	shared.alone = m.Cable
	shared.Cable *= n * far
	shared.senders = ranks
	return shared
}

// perByte returns the time of a byte of a message that uses a number of cables. Those of
// several senders use different cables, as far as there are.
func (m *Model) perByte(cables int) float64 {
	if m.Cable == 0 {
		return m.PerByte / float64(max(cables, 1))
	}
	rank := m.PerByte
	if m.TimeSlices && !m.rooted { // the receiver's share is not spent beside the sender's
		rank *= 2
	}
	return max(rank, m.Cable/float64(max(min(cables*max(m.senders, 1), m.cables()), 1)))
}
