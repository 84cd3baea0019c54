package pmi

// One PMI-1 service for ranks on several hosts: a tree of servers, one on each host for
// its ranks, and the root, which stores all values.
//
//	put      is stored at the rank's server and sent to the parent with the next fence
//	fence    a server reports its ranks to its parent as they enter; the root counts
//	         the ranks and releases all when the last has entered
//	get      is answered from the server's store; otherwise the server requests the
//	         value from its parent, up to the root, and caches the answer
//
// So a value is sent only to hosts that request it: a job of many ranks with few
// neighbors transfers few values. In a large job the root does not store all values
// either: a server keeps those whose key ends with the number of the rank that has put
// them (ServerConfig.Keep), and the root fetches them from there.
//
// Package launch connects the servers.

import (
	"iter"
	"strings"
)

// Pair is a key and its value.
type Pair struct{ Key, Value string }

// Upstream is the connection to the parent server.
type Upstream interface {
	// Values sends the values that the ranks of this server have put since the last
	// fence. It is called when all of them have entered one, before the event of the
	// last.
	Values(values []Pair)
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
// once: immediately if the value is stored here, otherwise when the parent, or at the root
// the server of the rank that has put it, has answered. Concurrent requests for one key
// are forwarded once.
func (s *Server) Lookup(key string, done func(value string, ok bool)) {
	if request, ok := strings.CutPrefix(key, launcherKey); ok {
		s.forwardRequest(key, request, done)
		return
	}
	s.mu.Lock()
	s.counts.Gets++
	value, ok := s.values[key]
	forward := s.forward(key)
	if ok || forward == nil {
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
		forward(func(value string, ok bool) { s.forwardAnswer(key, value, ok) })
	}
}

// forward returns the function that requests a missing value elsewhere, nil if no other
// server has it.
func (s *Server) forward(key string) func(done func(value string, ok bool)) {
	if s.cfg.Up != nil {
		return func(done func(string, bool)) { s.cfg.Up.Get(key, done) }
	}
	if rank := keyRank(key); s.cfg.Fetch != nil && rank >= 0 && rank < s.cfg.Size {
		return func(done func(string, bool)) { s.cfg.Fetch(rank, key, done) }
	}
	return nil
}

// StoredValue returns a value that this server stores.
func (s *Server) StoredValue(key string) (value string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok = s.values[key]
	return value, ok
}

// forwardAnswer forwards an answer. Values never change, so a found value is cached, but not
// at the root, which would store the values of all ranks in the end. A missing value is
// not, because it may appear with the next fence.
func (s *Server) forwardAnswer(key, value string, ok bool) {
	s.mu.Lock()
	if _, have := s.values[key]; ok && !have && s.cfg.Up != nil {
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

// Enter reports to the root that ranks of other servers have entered a fence, the nth of
// the job from 0, and that their values have been merged if they were the last of their
// server.
func (s *Server) Enter(nth, ranks int) {
	s.mu.Lock()
	current := nth == s.passed
	if current {
		s.remote += ranks
	}
	s.mu.Unlock()
	if current && s.enter(ranks) {
		s.Release()
	}
}

// Reach reports to the root that ranks of other servers have reached a phase.
func (s *Server) Reach(p Phase, ranks iter.Seq[int]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rank := range ranks {
		if rank >= 0 && rank < s.cfg.Size {
			s.phase[rank] = p
		}
	}
}

// enter counts ranks and reports whether the fence is complete.
func (s *Server) enter(ranks int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entered += ranks
	return s.entered >= s.cfg.Size
}

// Report passes an event of another server's rank, other than a fence, to the root.
func (s *Server) Report(e Event) {
	if e.Rank < 0 || e.Rank >= s.cfg.Size || e.Peer < 0 || e.Peer >= s.cfg.Size || e.Fence {
		return
	}
	if e.Unreachable {
		s.notify(e)
		return
	}
	s.mu.Lock()
	s.phase[e.Rank] = e.Phase
	s.mu.Unlock()
	s.notify(e)
	if e.Phase == PhaseJoined && e.Refused == "" {
		s.compare(Party{e.Rank, e.Host, e.Terms})
	}
}

// SameTerms reports whether a rank of a child server has the terms of the first rank that
// has joined here. If none has, the rank becomes the first and SameTerms returns false:
// somebody else must compare them.
func (s *Server) SameTerms(p Party) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil {
		s.first = &p
		return false
	}
	return s.first.Terms == p.Terms
}

func (s *Server) takeFresh() []Pair {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := s.fresh
	s.fresh = nil
	return fresh
}
