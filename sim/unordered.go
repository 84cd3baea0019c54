package sim

// Unordered sends, by the rules of internal/sched/run_unordered.go. A peer counts as
// arrived when it has entered the call: arrivals are known at once, which is a little
// earlier than in a program.

func (m *more) remove(id int32) {
	for i, u := range m.under {
		if u == id {
			last := len(m.under) - 1
			m.under[i] = m.under[last]
			m.under = m.under[:last]
			break
		}
	}
	m.fresh = len(m.held) > 0
}

// serve posts as many unordered sends as the ports allow, those to arrived peers first.
func (s *Sim) serve(r int32, k *rank, t *template) {
	m := k.more
	m.fresh = false
	arrived := 0
	for _, id := range m.under {
		if s.arrived(r, k, t, id) {
			arrived++
		}
	}
	away := len(m.under) - arrived
	kept := m.held[:0]
	for _, id := range m.held {
		if arrived < t.ports && s.arrived(r, k, t, id) {
			if s.depart(r, k, t, id) {
				arrived++
			}
			continue
		}
		kept = append(kept, id)
	}
	gone := 0
	for gone < len(kept) && arrived+away < t.ports {
		if s.depart(r, k, t, kept[gone]) {
			away++
		}
		gone++
	}
	m.held = kept[:copy(kept, kept[gone:])]
}

func (s *Sim) arrived(r int32, k *rank, t *template, id int32) bool {
	p := &s.ranks[s.steps[k.step].peer(t, r, id)]
	return p.step > k.step || p.done || p.step == k.step && p.begun
}

func (s *Sim) depart(r int32, k *rank, t *template, id int32) bool {
	if !s.post(r, k, t, id) {
		return false
	}
	k.more.under = append(k.more.under, id)
	return true
}
