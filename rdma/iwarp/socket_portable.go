//go:build !linux || muster_portable

package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// Sockets of package net, for systems without epoll. Its calls block, so each connection
// has two goroutines with a buffer each (stream_portable.go). The rest of the package is
// the same as over the sockets of socket_linux.go; a message costs one copy and one
// goroutine switch more at each end.

// conn is a TCP connection.
type conn = *stream

// noConn returns the conn of an unconnected queue pair.
func noConn() conn { return nil }

func (s *stream) none() bool { return s == nil }

// waitEarly: see rdma.Attr. The goroutines of the connections run when nobody polls.
const waitEarly = true

// Events of a connection.
const (
	readEvent = 1 << iota
	writeEvent
)

// errNotNow means that the connection has nothing, or no room, for now.
const errNotNow = notNowError("iwarp: nothing for now")

type notNowError string

func (e notNowError) Error() string { return string(e) }

func notNow(err error) bool { return err == error(errNotNow) }

// wsaReset is WSAECONNRESET of Windows.
const wsaReset = syscall.Errno(10054)

func wasReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || runtime.GOOS == "windows" && errors.Is(err, wsaReset)
}

// piece is a piece of memory.
type piece []byte

// message is not needed here.
type message struct{}

func pieceOf(b []byte) piece { return b }

func lengthOf(p *piece) int { return len(*p) }

func bytesOf(p *piece) []byte { return *p }

// skip removes n bytes from the front of a piece. An empty piece keeps nothing alive.
func skip(p *piece, n int) {
	if *p = (*p)[n:]; len(*p) == 0 {
		*p = nil
	}
}

// rebase turns a piece that is a part of from into the same part of to. Parts of one slice
// end at the same byte of their array.
func rebase(p *piece, from, to []byte) {
	if len(*p) == 0 || cap(from) == 0 || cap(*p) > cap(from) || &(*p)[:cap(*p)][cap(*p)-1] != &from[:cap(from)][cap(from)-1] {
		return
	}
	at := cap(from) - cap(*p)
	*p = to[at : at+len(*p)]
}

// gather sends pieces of memory as one part of the stream, as far as there is room.
func gather(c conn, _ *message, pieces []piece) (n int, err error) {
	race.OrderBeforeSending()
	for _, p := range pieces {
		k, err := c.put(p)
		if n += k; k < len(p) {
			if n > 0 {
				err = nil
			}
			return n, err
		}
	}
	return n, nil
}

// send is gather for one piece.
func send(c conn, b []byte) (int, error) {
	race.OrderBeforeSending()
	return c.put(b)
}

// read reads what has arrived, up to the length of b. The end of the stream is 0 bytes.
func read(c conn, b []byte) (int, error) {
	n, err := c.take(b)
	race.OrderAfterReceiving()
	return n, err
}

// scatter reads into several pieces of memory.
func scatter(c conn, pieces []piece) (n int, err error) {
	for _, p := range pieces {
		k, err := c.take(p)
		if n += k; k < len(p) {
			if n > 0 {
				err = nil
			}
			race.OrderAfterReceiving()
			return n, err
		}
	}
	race.OrderAfterReceiving()
	return n, nil
}

// startDial begins to connect; established reports the result.
func startDial(d *device, to netip.AddrPort) (conn, error) {
	s := newStream(d)
	ctx, cancel := context.WithTimeout(context.Background(), defaultTimeout)
	s.cancel = cancel
	d.sockets.goroutines.Go(func() {
		defer cancel()
		tcp, err := new(net.Dialer).DialContext(ctx, "tcp", to.String())
		if err != nil {
			s.fail(err)
			return
		}
		s.begin(tcp.(*net.TCPConn))
	})
	return s, nil
}

// maxSegment returns the longest TCP segment.
func (s *stream) maxSegment() int { return ethernetSegment }

// setLowWater does nothing: goroutines read the socket.
func (s *stream) setLowWater(int) {}

// noDelay does nothing: package net sets it.
func (s *stream) noDelay() error { return nil }

// memory returns the buffers of the connection; those of the kernel are not known.
func (s *stream) memory() uint64 { return 2 * streamBuffer }

// retransmissions is not known.
func (s *stream) retransmissions() uint64 { return 0 }

// setTimeouts makes idle connections detect a dead peer. A peer that does not read is
// detected by stream.write.
func (cfg *Config) setTimeouts(c conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cfg.Timeout > 0 {
		c.timeout = cfg.Timeout
	}
	if c.tcp != nil {
		// Without them the loss of an idle peer is noticed later.
		_ = c.tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: max(int(c.timeout/time.Second), 1)})
	}
}

// await gives an event time to happen. Connections are established so seldom that it only
// sleeps.
func (s *stream) await(event uint32, _ time.Duration) error {
	if !s.ready(event) {
		time.Sleep(streamPause)
	}
	return nil
}

// streamPause is the time between two looks at a connection that is being established.
const streamPause = 500 * time.Microsecond

// listenSocket is a listening socket, with connections that nobody has accepted yet.
type listenSocket struct {
	l       net.Listener
	waiting chan conn
}

// listen listens on a port, chosen by the system if it is 0.
func listen(d *device, at netip.AddrPort) (listenSocket, netip.AddrPort, error) {
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		return listenSocket{}, at, fmt.Errorf("listen on %v: %w", at, err)
	}
	bound, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		_ = l.Close() // nothing has been accepted
		return listenSocket{}, at, fmt.Errorf("get the port of %v: %w", l.Addr(), err)
	}
	s := listenSocket{l, make(chan conn, mostAccepts)}
	d.sockets.goroutines.Go(func() { s.run(d) })
	return s, netip.AddrPortFrom(at.Addr(), bound.Port()), nil
}

// run accepts connections until the socket is closed.
func (l listenSocket) run(d *device) {
	defer l.refuse()
	for {
		c, err := l.l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many open files, or it was closed again
			time.Sleep(connectPause)
			continue
		}
		s := newStream(d)
		s.begin(c.(*net.TCPConn))
		select {
		case l.waiting <- s:
		default:
			s.displace()
		}
		d.ReportArrival()
	}
}

func (l listenSocket) accept() (conn, bool) {
	select {
	case c := <-l.waiting:
		return c, true
	default:
		return nil, false
	}
}

// await gives a caller, or an event of c, time to come.
func (l listenSocket) await(c conn, event uint32, limit time.Duration) error {
	if len(l.waiting) == 0 && (c == nil || !c.ready(event)) {
		time.Sleep(streamPause)
	}
	return nil
}

func (l listenSocket) close() {
	_ = l.l.Close() // nothing is written
}

// refuse closes the connections that nobody will accept.
func (l listenSocket) refuse() {
	for {
		c, ok := l.accept()
		if !ok {
			return
		}
		c.close()
	}
}

// sockets counts the goroutines of all connections of a device.
type sockets struct {
	goroutines sync.WaitGroup
	empty      uint // polls that found nothing
}

func (s *sockets) open(d *device) error {
	d.Reports()
	return nil
}

// add reports a connection: its first bytes may have been reported before it belonged to the
// queue pair.
func (s *sockets) add(q *queuePair) { q.dev.ReportArrival() }

func (s *sockets) remove(*queuePair)          {}
func (s *sockets) watch(conn, uint32, uint32) {}
func (s *sockets) close()                     {}

// endSilent does nothing: the goroutines of a connection notice that the peer is silent.
func (d *device) endSilent() time.Duration { return soft.Forever }

// watchListener does nothing: the goroutine that accepts connections reports them.
func (s *sockets) watchListener(listenSocket) {}

// wait waits until the last bytes are sent and all connections are closed.
func (s *sockets) wait() { s.goroutines.Wait() }

// looking declares that the device now looks at all connections, and looks for callers if
// they may come at any time.
func (d *device) looking() {
	d.BeginLook()
	if d.admitGuest != nil && (len(d.listener.sock.waiting) > 0 || len(d.listener.callers) > 0) {
		d.serviceListenerLocked(time.Now())
	}
}

// giveWayLocked is called when a Poll has found nothing. With one P, a loop of
// Polls keeps the goroutines of the connections from running: the scheduler looks at the
// network when no goroutine can run, or else every ten milliseconds.
func (d *device) giveWayLocked() {
	s := &d.sockets
	if s.empty++; s.empty%pollsAtOnce != 0 || runtime.GOMAXPROCS(0) > 1 {
		return
	}
	d.mu.Unlock()
	time.Sleep(time.Microsecond)
	d.mu.Lock()
}

// pollsAtOnce is the number of empty Polls after which giveWayLocked acts.
const pollsAtOnce = 16

// progressReady drives the connections that are ready.
func (d *device) progressReady() {
	for _, q := range d.queues {
		if q.fd != nil && q.fd.ready(readEvent|writeEvent) {
			q.progress()
		}
	}
}
