package sim

// Cores that ranks share. If a host has more ranks than cores, a rank that something
// happens to waits for a core. In its time slice it does all that it can, and then gives up
// the core. Ranks that have nothing to do poll in their time slices, which delays the others.
//
// In a lab all nodes are on one host (Machine.NodesPerHost). A model without cores
// predicts 16 lab ranks on two cores ten times too fast.

type host struct {
	idle    int // cores
	queue   []int32
	head    int
	last    int32 // the rank that ran last
	waiting int   // ranks that are in a call and have nothing to do
	busy    int64 // time of all cores
	memory  int64 // the memory is busy until then
}

func (s *Sim) newHosts() {
	s.hosts = make([]host, (s.nodes+s.perHost-1)/s.perHost)
	ranks := make([]int, len(s.hosts))
	for r := range s.ranks {
		ranks[s.hostOf(int32(r))]++
	}
	for i := range s.hosts {
		s.hosts[i].idle, s.hosts[i].last = s.m.Cores, -1
		s.shared = s.shared || ranks[i] > s.m.Cores
	}
}

func (s *Sim) hostOf(r int32) int { return s.node(r) / s.perHost }

// pend records an event of a rank that may have no core.
func (s *Sim) pend(e *event) {
	k := &s.ranks[e.dst]
	m := k.extra()
	m.pending = append(m.pending, *e)
	if m.queued {
		return
	}
	m.queued = true
	h := &s.hosts[s.hostOf(e.dst)]
	if k.begun {
		h.waiting--
	}
	h.queue = append(h.queue, e.dst)
	s.dispatch(h)
}

// dispatch gives idle cores to the ranks that wait for one.
func (s *Sim) dispatch(h *host) {
	for h.idle > 0 && h.head < len(h.queue) {
		r := h.queue[h.head]
		if h.head++; h.head == len(h.queue) {
			h.queue, h.head = h.queue[:0], 0
		}
		h.idle--
		s.runSlice(h, r)
	}
}

// runSlice lets a rank do all that it can, from now on.
func (s *Sim) runSlice(h *host, r int32) {
	k := &s.ranks[r]
	k.cpu = max(k.cpu, s.now)
	if h.last != r {
		h.last = r
		waiting := float64(max(h.waiting, 0))
		ready := float64(len(h.queue) - h.head + s.m.Cores)
		k.cpu += int64((s.m.Switch + s.m.Poll*waiting/ready) * picos)
	}
	pending := k.more.pending
	k.more.pending = nil
	for i := range pending {
		s.handle(k, &pending[i])
	}
	if k.more.pending == nil {
		k.more.pending = pending[:0]
	}
	h.busy += k.cpu - s.now
	s.q.push(event{t: k.cpu, dst: r, kind: evFree})
}

// endSlice is the end of a time slice. A rank to which something happened meanwhile goes to the
// end of the queue.
func (s *Sim) endSlice(r int32) {
	k := &s.ranks[r]
	h := &s.hosts[s.hostOf(r)]
	h.idle++
	if len(k.more.pending) > 0 {
		h.queue = append(h.queue, r)
	} else if k.more.queued = false; k.begun {
		h.waiting++
	}
	s.dispatch(h)
}
