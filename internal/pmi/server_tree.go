package pmi

// One PMI-1 service for ranks on several hosts: a tree of servers, one on each host for
// its ranks, and the root, which stores all values.
//
//	put      is stored at the rank's server and sent to the parent with the next fence
//	fence    a server notifies its parent when all its own ranks have entered; the root
//	         counts the ranks and releases all when the last has entered
//	get      is answered from the server's store; otherwise the server requests the
//	         value from its parent, up to the root, and caches the answer
//
// So a value is sent only to hosts that request it: a job of many ranks with few
// neighbors transfers few values. Package launch connects the servers.

// Pair is a key and its value.
type Pair struct{ Key, Value string }

// Upstream is the connection to the parent server.
type Upstream interface {
	// Fence reports that all ranks of this server have entered the fence, with the
	// values they have put since the last one.
	Fence(values []Pair)
	// Get requests a value. done is called once with the answer, from any goroutine.
	Get(key string, done func(value string, ok bool))
}

// ServerCounts counts requests for values.
type ServerCounts struct {
	Gets      uint64 // requests to this server, by its ranks and by child servers
	Forwarded uint64 // of these, requests forwarded to the parent
}

// Counts returns the counts of this server so far.
func (s *Server) Counts() ServerCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Lookup finds a value for a rank of this server or for a child server. done is called
// once: immediately if the value is stored here or this is the root, otherwise when the
// parent has answered. Concurrent requests for one key are forwarded once.
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

// answered forwards the parent's answer. Values never change, so a found value is cached.
// A missing value is not, because it may appear with the next fence.
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

// Merge stores values put by ranks of a child server. As with put, the first value of a
// key stays.
func (s *Server) Merge(values []Pair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if _, twice := s.values[v.Key]; !twice {
			s.values[v.Key] = v.Value
		}
	}
}

// Enter reports to the root that all ranks of another server have entered the fence and
// that their values have been merged.
func (s *Server) Enter(ranks int) {
	if s.enter(ranks) {
		s.Release()
	}
}

// enter counts ranks and reports whether the fence is complete.
func (s *Server) enter(ranks int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered += ranks
	return s.entered >= s.cfg.Size
}

// Report passes an event of another server's rank to the root.
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
	s.notify(e)
	if e.Phase == PhaseJoined && !e.Fence && e.Refused == "" {
		s.compare(Party{e.Rank, e.Host, e.Terms})
	}
}

func (s *Server) takeFresh() []Pair {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := s.fresh
	s.fresh = nil
	return fresh
}
