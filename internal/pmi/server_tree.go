package pmi

// One PMI-1 service for ranks on several hosts: a tree of servers, one on each
// host for the ranks there, and the root, which holds all values.
//
//	put      is kept where the rank is; it travels up with the next fence
//	fence    a server tells the one above when all its own ranks are in; the
//	         root counts them, and when all are in releases everybody
//	get      is answered from what a server has; else it asks the one above,
//	         up to the root, and keeps the answer
//
// So a value goes only where it is asked for: a job of many ranks that talk to
// few neighbors moves few of them. How the servers reach each other is not
// said here: whoever makes them passes on what they tell (package launch).

// Pair is a value and its key.
type Pair struct{ Key, Value string }

// Upstream is the way to the server above.
type Upstream interface {
	// Fence tells that all ranks of this server have entered the fence, and
	// what they have put since the last one.
	Fence(values []Pair)
	// Get asks for a value. done is called once with the answer, from any
	// goroutine.
	Get(key string, done func(value string, ok bool))
}

// ServerCounts report what the requests for values cost.
type ServerCounts struct {
	Gets      uint64 // asked of this server, by its ranks and by servers below
	Forwarded uint64 // of these, how many it had to ask of the server above
}

// Counts are those of this server so far.
func (s *Server) Counts() ServerCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Lookup finds a value for a rank of this server or for a server below. done is
// called once: at once if the value is here or this is the root, else when the
// server above has answered. Several who ask for the same are one request.
func (s *Server) Lookup(key string, done func(value string, ok bool)) {
	s.mu.Lock()
	s.counts.Gets++
	value, ok := s.values[key]
	if ok || s.cfg.Up == nil {
		s.mu.Unlock()
		done(value, ok)
		return
	}
	waiting := s.asked[key]
	s.asked[key] = append(waiting, done)
	if len(waiting) == 0 {
		s.counts.Forwarded++
	}
	s.mu.Unlock()
	if len(waiting) == 0 {
		s.cfg.Up.Get(key, func(value string, ok bool) { s.answered(key, value, ok) })
	}
}

// answered passes on what the server above has said. Values never change, so
// one that was found is kept; that one is missing may change with every fence.
func (s *Server) answered(key, value string, ok bool) {
	s.mu.Lock()
	if _, have := s.values[key]; ok && !have {
		s.values[key] = value
	}
	waiting := s.asked[key]
	delete(s.asked, key)
	s.mu.Unlock()
	for _, done := range waiting {
		done(value, ok)
	}
}

// Merge stores what ranks of a server below have put. The first value of a key
// stays, as with put.
func (s *Server) Merge(values []Pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if _, twice := s.values[v.Key]; !twice {
			s.values[v.Key] = v.Value
		}
	}
}

// Enter tells the root that all ranks of another server, so many, have entered
// the fence and that what they put has been merged.
func (s *Server) Enter(ranks int) {
	if s.enter(ranks) {
		s.Release()
	}
}

// enter counts, and says whether the fence is complete.
func (s *Server) enter(ranks int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered += ranks
	return s.entered >= s.cfg.Size
}

// Report tells the root what a rank of another server does.
func (s *Server) Report(e Event) {
	if e.Rank < 0 || e.Rank >= s.cfg.Size {
		return
	}
	s.mu.Lock()
	if e.Fence {
		s.remote++
	} else {
		s.phase[e.Rank] = e.Phase
	}
	s.mu.Unlock()
	s.tell(e)
}

func (s *Server) takeFresh() []Pair {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := s.fresh
	s.fresh = nil
	return fresh
}
