//go:build !linux || muster_portable

package iwarp

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// stream is a TCP connection whose calls do not block: a goroutine reads it into one
// buffer, and another one writes it from a second. Both report to the device when they have
// changed what it may have waited for.
type stream struct {
	dev     *device
	timeout time.Duration // for the peer to read
	cancel  context.CancelFunc

	mu       sync.Mutex
	tcp      *net.TCPConn // nil: not connected yet
	in, out  ring
	readErr  error     // the end of in
	writeErr error     // nothing more is sent
	space    sync.Cond // in has room, or the stream is closed
	bytes    sync.Cond // out has bytes, or ends
	full     bool      // the device waits for room in out
	ended    bool      // nothing more is put into out
	closed   bool
}

// streamBuffer is the size of the buffer of one direction: two frames.
const streamBuffer = 2 * fpduMax

// flushTimeout is how long a closed stream may take to send its last bytes.
const flushTimeout = 2 * time.Second

// ring is a circular buffer.
type ring struct {
	buf   []byte
	first int
	n     int
}

// room returns the longest free part, in one piece.
func (r *ring) room() []byte {
	at := r.first + r.n
	if at >= len(r.buf) {
		at -= len(r.buf)
		return r.buf[at:r.first]
	}
	return r.buf[at:]
}

// front returns the first bytes, in one piece.
func (r *ring) front() []byte { return r.buf[r.first:min(r.first+r.n, len(r.buf))] }

// drop removes n of the first bytes.
func (r *ring) drop(n int) {
	if r.first += n; r.first == len(r.buf) {
		r.first = 0
	}
	r.n -= n
}

func newStream(d *device) *stream {
	s := &stream{dev: d, timeout: defaultTimeout}
	s.space.L, s.bytes.L = &s.mu, &s.mu
	return s
}

// begin starts the goroutines of an established connection.
func (s *stream) begin(tcp *net.TCPConn) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = tcp.Close() // nothing was sent
		return
	}
	s.tcp = tcp
	s.in.buf, s.out.buf = make([]byte, streamBuffer), make([]byte, streamBuffer)
	s.mu.Unlock()
	s.dev.sockets.goroutines.Go(s.read)
	s.dev.sockets.goroutines.Go(s.write)
	s.dev.ReportArrival()
}

// fail records that the connection was not established.
func (s *stream) fail(err error) {
	s.mu.Lock()
	s.readErr, s.writeErr = err, err
	s.mu.Unlock()
	s.dev.ReportArrival()
}

// checkEstablished reports whether the connection is established.
func (s *stream) checkEstablished() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tcp == nil && s.readErr != nil {
		return false, s.readErr
	}
	return s.tcp != nil, nil
}

// read is the goroutine that reads.
func (s *stream) read() {
	for {
		s.mu.Lock()
		for s.in.n == len(s.in.buf) && !s.closed {
			s.space.Wait()
		}
		room, closed := s.in.room(), s.closed
		s.mu.Unlock()
		if closed {
			return
		}
		n, err := s.tcp.Read(room)
		s.mu.Lock()
		s.in.n += n
		if err != nil {
			s.readErr = err
		}
		s.mu.Unlock()
		s.dev.ReportArrival()
		if err != nil {
			return
		}
	}
}

// write is the goroutine that writes. It closes the connection when it is done with it.
func (s *stream) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for s.out.n == 0 && !s.ended {
			s.bytes.Wait()
		}
		if s.out.n == 0 || s.writeErr != nil {
			break
		}
		front, limit := s.out.front(), s.timeout
		if s.closed {
			limit = flushTimeout
		}
		s.mu.Unlock()
		_ = s.tcp.SetWriteDeadline(time.Now().Add(limit)) // it fails only if it is closed, and then Write does
		n, err := s.tcp.Write(front)
		s.mu.Lock()
		s.out.drop(n)
		if err != nil {
			s.writeErr = err
		}
		if s.full || err != nil {
			s.full = false
			s.dev.ReportArrival()
		}
	}
	if s.writeErr == nil {
		_ = s.tcp.CloseWrite() // it may be reset
	}
	for !s.closed {
		s.bytes.Wait()
	}
	_ = s.tcp.Close() // all was sent, or can not be
}

// put adds bytes to what is to be sent, as far as there is room.
func (s *stream) put(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.writeErr != nil:
		return 0, s.writeErr
	case s.ended || s.tcp == nil:
		return 0, net.ErrClosed
	}
	for n < len(b) && s.out.n < len(s.out.buf) {
		k := copy(s.out.room(), b[n:])
		s.out.n += k
		n += k
	}
	if n > 0 {
		s.bytes.Signal()
	}
	if n < len(b) {
		s.full = true
	}
	if n == 0 && len(b) > 0 {
		return 0, errNotNow
	}
	return n, nil
}

// take removes bytes from what was read.
func (s *stream) take(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.in.n == 0 {
		switch {
		case s.readErr == nil:
			return 0, errNotNow
		case errors.Is(s.readErr, io.EOF):
			return 0, nil
		}
		return 0, s.readErr
	}
	for n < len(b) && s.in.n > 0 {
		k := copy(b[n:], s.in.front())
		s.in.drop(k)
		n += k
	}
	s.space.Signal()
	return n, nil
}

// ready reports whether one of the events has happened.
func (s *stream) ready(events uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return events&readEvent != 0 && (s.in.n > 0 || s.readErr != nil) ||
		events&writeEvent != 0 && (s.tcp != nil && s.out.n < len(s.out.buf) || s.writeErr != nil)
}

// unsent returns 1 if there are bytes that the system has not accepted.
func (s *stream) unsent() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeErr == nil && s.out.n > 0 {
		return 1
	}
	return 0
}

// shutdown ends the stream to the peer, after what is to be sent.
func (s *stream) shutdown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.bytes.Signal()
}

// close ends the connection, after what is to be sent.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.closed = true, true
	if s.cancel != nil {
		s.cancel()
	}
	s.space.Signal()
	s.bytes.Signal()
	if s.tcp != nil && s.out.n > 0 {
		_ = s.tcp.SetWriteDeadline(time.Now().Add(flushTimeout)) // of a Write that is under way
	}
}

// displace resets the connection of a caller, which distinguishes it from a refusal.
func (s *stream) displace() {
	s.mu.Lock()
	tcp := s.tcp
	s.mu.Unlock()
	_ = tcp.SetLinger(0) // without it the peer sees a refusal
	s.close()
}
