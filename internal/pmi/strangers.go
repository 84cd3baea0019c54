package pmi

// Connections whose other end has not proven that it has the key.

import (
	"net"
	"slices"
	"sync"
)

// strangers are such connections, at most maxUnauthenticated of them, oldest first. A new one
// takes the place of the oldest, so that idle ones cannot keep those with the key away.
type strangers struct {
	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

// add adds a connection, or closes it if there are to be no more.
func (s *strangers) add(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return false
	}
	if len(s.conns) == maxUnauthenticated {
		s.conns[0].Close()
		s.conns = slices.Delete(s.conns, 0, 1)
	}
	s.conns = append(s.conns, conn)
	return true
}

func (s *strangers) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.conns, conn); i >= 0 {
		s.conns = slices.Delete(s.conns, i, i+1)
	}
}

// close closes all of them, and those that come later.
func (s *strangers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, conn := range s.conns {
		conn.Close()
	}
	s.conns = nil
}
