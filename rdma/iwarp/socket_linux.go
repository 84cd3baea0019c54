//go:build !muster_portable

package iwarp

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// Sockets of Linux: descriptors that do not block, and epoll. socket_portable.go is the
// counterpart for other systems.

// conn is the descriptor of a TCP connection.
type conn int

// noConn returns the conn of an unconnected queue pair.
func noConn() conn { return -1 }

func (c conn) none() bool { return c < 0 }

// waitEarly: see rdma.Attr. A poll reads the sockets itself.
const waitEarly = false

// Events of a socket.
const (
	readEvent  = unix.EPOLLIN
	writeEvent = unix.EPOLLOUT
)

// notNow reports whether the socket has nothing, or no room, for now.
func notNow(err error) bool { return err == unix.EAGAIN || err == unix.EINTR }

func wasReset(err error) bool { return errors.Is(err, unix.ECONNRESET) }

// newSocket returns a TCP socket that does not block and does not hold back small frames.
func newSocket(ip netip.Addr) (conn, error) {
	family := unix.AF_INET
	if !ip.Is4() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return noConn(), err
	}
	if err := conn(fd).noDelay(); err != nil {
		conn(fd).close()
		return noConn(), err
	}
	return conn(fd), nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// startDial begins to connect; established reports the result.
func startDial(_ *device, to netip.AddrPort) (conn, error) {
	c, err := newSocket(to.Addr())
	if err == nil {
		err = unix.Connect(int(c), sockaddr(to))
	}
	if err == unix.EINPROGRESS {
		err = nil
	}
	return c, err
}

// checkEstablished reports whether a pending connection is established.
func (c conn) checkEstablished() (bool, error) {
	look := []unix.PollFd{{Fd: int32(c), Events: unix.POLLOUT}}
	n, err := unix.Poll(look, 0)
	if err == unix.EINTR || err == nil && n == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	code, err := unix.GetsockoptInt(int(c), unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	return err == nil, err
}

// await waits for an event.
func (c conn) await(event uint32, limit time.Duration) error {
	return listenSocket(-1).await(c, event, limit)
}

// ready is for sockets that epoll does not report.
func (c conn) ready(uint32) bool { return false }

// unsent is for sockets that this process buffers.
func (c conn) unsent() int { return 0 }

func (c conn) noDelay() error {
	return unix.SetsockoptInt(int(c), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
}

// setLowWater sets the number of bytes from which the socket is readable for epoll. A read
// returns whatever there is.
func (c conn) setLowWater(n int) {
	_ = unix.SetsockoptInt(int(c), unix.SOL_SOCKET, unix.SO_RCVLOWAT, n) // without it every packet is reported
}

// maxSegment returns the longest TCP segment.
func (c conn) maxSegment() int {
	emss, err := unix.GetsockoptInt(int(c), unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	if err != nil {
		return ethernetSegment
	}
	return emss
}

// memory returns the limit of the kernel's memory for a socket, both directions
// (socket(7)).
func (c conn) memory() (n uint64) {
	for _, option := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF} {
		if v, err := unix.GetsockoptInt(int(c), unix.SOL_SOCKET, option); err == nil {
			n += uint64(v)
		}
	}
	return n
}

// retransmissions returns the number of segments that TCP has sent again.
func (c conn) retransmissions() uint64 {
	info, err := unix.GetsockoptTCPInfo(int(c), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0
	}
	return uint64(info.Total_retrans)
}

// shutdown ends the stream to the peer.
func (c conn) shutdown() { _ = unix.Shutdown(int(c), unix.SHUT_WR) } // it may be reset

func (c conn) close() { _ = unix.Close(int(c)) }

// displace resets the connection of a caller, which distinguishes it from a refusal.
func (c conn) displace() {
	_ = unix.SetsockoptLinger(int(c), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // without it the peer sees a refusal
	c.close()
}

// listenSocket is the descriptor of a listening socket.
type listenSocket int

// listen listens on a port, chosen by the kernel if it is 0.
func listen(_ *device, at netip.AddrPort) (listenSocket, netip.AddrPort, error) {
	c, err := newSocket(at.Addr())
	fail := func(what string, err error) (listenSocket, netip.AddrPort, error) {
		if !c.none() {
			c.close()
		}
		return -1, at, fmt.Errorf("%s on %v: %w", what, at, err)
	}
	if err != nil {
		return fail("create a socket", err)
	}
	if at.Port() != 0 {
		// Accepted connections inherit it, so those that stay in TIME_WAIT do not prevent the
		// next device from using this port. Of two that are bound to one port, Listen refuses
		// the second.
		if err = unix.SetsockoptInt(int(c), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return fail("set SO_REUSEADDR", err)
		}
	}
	if err = unix.Bind(int(c), sockaddr(at)); err != nil {
		return fail("bind a socket", err)
	}
	// A caller sends its request first. It is reported when the request has arrived, so that
	// whoever accepts it can answer at once; a silent one a second later. Without it, a
	// request that comes late is read after a pause.
	_ = unix.SetsockoptInt(int(c), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 1)
	if err = unix.Listen(int(c), 1024); err != nil {
		return fail("listen", err)
	}
	name, err := unix.Getsockname(int(c))
	if err != nil {
		return fail("get the port", err)
	}
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		at = netip.AddrPortFrom(at.Addr(), uint16(a.Port))
	case *unix.SockaddrInet6:
		at = netip.AddrPortFrom(at.Addr(), uint16(a.Port))
	}
	return listenSocket(c), at, nil
}

// accept returns the next connection. ok is false if there is none, or it was closed again.
func (l listenSocket) accept() (c conn, ok bool) {
	// unix.Accept4 allocates an address, which nobody needs, even if there is no connection.
	fd, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(l), 0, 0, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	return conn(fd), errno == 0
}

// await waits for a caller, or for an event of c.
func (l listenSocket) await(c conn, event uint32, limit time.Duration) error {
	files := []unix.PollFd{{Fd: int32(l), Events: unix.POLLIN}, {Fd: int32(c), Events: int16(event)}}
	if _, err := unix.Poll(files, int(limit/time.Millisecond)); err != nil && err != unix.EINTR {
		return err
	}
	return nil
}

func (l listenSocket) close() { conn(l).close() }

// sockets is the set of all connections of a device.
type sockets struct {
	set   soft.Set
	byFD  []*queuePair // by descriptor; nil for the listener and callers
	found [16]unix.EpollEvent
	looks uint
	asked time.Time // when endSilent did its work
}

func (s *sockets) open(d *device) error {
	if err := s.set.Open(); err != nil {
		return err
	}
	d.SetSource(s.set.FD(), nil)
	return nil
}

func (s *sockets) add(q *queuePair) {
	for len(s.byFD) <= int(q.fd) {
		s.byFD = append(s.byFD, nil)
	}
	s.byFD[q.fd] = q
}

func (s *sockets) remove(q *queuePair) { s.byFD[q.fd] = nil }

// watch changes the events that end a wait.
func (s *sockets) watch(c conn, from, to uint32) {
	_ = s.set.Watch(int(c), from, to) // fails only for an invalid descriptor
}

// watchListener lets callers end waits.
func (s *sockets) watchListener(l listenSocket) { s.watch(conn(l), 0, readEvent) }

func (s *sockets) close() { s.set.Close() }

// wait is for connections that goroutines close.
func (s *sockets) wait() {}

// looking looks for callers now and then, if they may come at any time: a Poll of few sockets
// does not ask epoll.
func (d *device) looking() {
	if d.admitGuest == nil {
		return
	}
	if s := &d.sockets; s.looks%looksPerAccept == 0 {
		d.serviceListenerLocked(time.Now())
		d.endSilent()
	}
	d.sockets.looks++
}

// looksPerAccept is the number of Polls for each look at the listener. A look is a system
// call, and a caller a rare event.
const looksPerAccept = 16

// giveWayLocked is for sockets that goroutines read.
func (d *device) giveWayLocked() {}

// progressReady drives the sockets that are ready.
func (d *device) progressReady() {
	s := &d.sockets
	n, _ := unix.EpollWait(s.set.FD(), s.found[:], 0) // the next wait reports an error
	called := false
	for i := range s.found[:max(n, 0)] {
		if fd := int(s.found[i].Fd); fd < len(s.byFD) && s.byFD[fd] != nil {
			s.byFD[fd].progress()
		} else {
			called = true
		}
	}
	if called && d.admitGuest != nil {
		d.serviceListenerLocked(time.Now())
	}
}
