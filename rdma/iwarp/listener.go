//go:build linux

package iwarp

import (
	"crypto/hmac"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// The listener: a listening socket, and callers whose request is not complete yet. Connect
// services it while it waits, so that two ranks that connect in different orders do not
// deadlock. A caller costs a descriptor and half a kilobyte until it has proved that it
// has the job's key; their number and time are limited. A new caller displaces the oldest
// one, so a flood of silent connections delays no peer: a peer's request follows its
// connection at once. A displaced caller sees a reset, and a peer then dials again.

type listener struct {
	fd      int
	at      netip.AddrPort
	callers []*caller
	closed  bool
}

// caller is an accepted connection whose request has not arrived yet.
type caller struct {
	fd    int
	since time.Time
	buf   [startupMax]byte
	n     int
}

const (
	mostCallers      = 64
	mostAccepts      = 256 // per call of serviceListener, which holds the device's lock
	handshakeTimeout = 5 * time.Second
)

// open listens on a port, chosen by the kernel if it is 0.
func (d *listener) open(at netip.AddrPort) error {
	ip := at.Addr()
	fail := func(what string, err error) error {
		d.close()
		return fmt.Errorf("iwarp: %s on %v: %w; Config.Address must be an address of this host, and Config.Port free", what, at, err)
	}
	var err error
	if d.fd, err = newSocket(ip); err != nil {
		d.closed = true
		return fail("create a socket", err)
	}
	if err = unix.Bind(d.fd, sockaddr(at)); err != nil {
		return fail("bind a socket", err)
	}
	if err = unix.Listen(d.fd, 1024); err != nil {
		return fail("listen", err)
	}
	name, err := unix.Getsockname(d.fd)
	if err != nil {
		return fail("get the port", err)
	}
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		d.at = netip.AddrPortFrom(ip, uint16(a.Port))
	case *unix.SockaddrInet6:
		d.at = netip.AddrPortFrom(ip, uint16(a.Port))
	}
	return nil
}

// newSocket returns a TCP socket that does not block and does not hold back small frames.
func newSocket(ip netip.Addr) (int, error) {
	family := unix.AF_INET
	if !ip.Is4() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// serviceListener accepts callers and reads their requests. The device's lock is held.
func (d *device) serviceListener(now time.Time) {
	listener := &d.listener
	kept := listener.callers[:0]
	for _, c := range listener.callers {
		switch {
		case d.readRequest(c):
		case now.Sub(c.since) > handshakeTimeout:
			_ = unix.Close(c.fd)
		default:
			kept = append(kept, c)
		}
	}
	clear(listener.callers[len(kept):])
	listener.callers = kept
	for range mostAccepts {
		fd, _, err := unix.Accept4(listener.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			break // no connection, or it was closed again
		}
		c := &caller{fd: fd, since: now}
		if d.readRequest(c) {
			continue
		}
		if len(listener.callers) == mostCallers {
			if oldest := listener.callers[0]; !d.readRequest(oldest) {
				displace(oldest.fd)
			}
			listener.callers = append(listener.callers[:0], listener.callers[1:]...)
		}
		listener.callers = append(listener.callers, c)
	}
}

// displace resets the connection of a caller, which distinguishes it from a refusal.
func displace(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // without it the peer sees a refusal
	_ = unix.Close(fd)
}

// readRequest reads from a caller and reports whether it is finished with it.
func (d *device) readRequest(c *caller) bool {
	n, err := read(c.fd, c.buf[c.n:])
	if err == unix.EAGAIN || err == unix.EINTR {
		return false
	}
	if err != nil || n == 0 {
		_ = unix.Close(c.fd)
		return true
	}
	c.n += n
	req, n, err := parseStartup(c.buf[:c.n], false)
	if err == nil && n == 0 {
		return false
	}
	// Bytes after a request are invalid: RFC 5044 section 7.1.2.
	if err != nil || n != c.n || !d.admit(c.fd, &req) {
		_ = unix.Close(c.fd)
	}
	return true
}

// admit assigns the requested queue pair to a caller, if it is permitted.
func (d *device) admit(fd int, req *startup) bool {
	token, from, ours := d.cfg.readGreeting(req.private)
	for _, q := range d.queues {
		switch {
		case q.state != unconnected || q.greeted:
		case !ours && q.peer == Anybody && len(d.cfg.Key) == 0:
			return q.accept(fd, req, nil)
		case ours && q.token == token && (q.peer == "" || q.peer == from):
			if !hmac.Equal(req.private, d.cfg.greeting(greetRequest, token, q.addr, from)) {
				return false // it does not have the key
			}
			if d.isBarred(from, q.bound) {
				return false
			}
			q.peer = from
			return q.accept(fd, req, d.cfg.greeting(greetReply, token, q.addr, from))
		}
	}
	return false
}

// accept replies to a request and attaches the connection.
func (q *queuePair) accept(fd int, req *startup, private []byte) bool {
	w := q.dev.preferences()
	rep, t, err := w.answer(req, private)
	frame, tooLong := rep.append(nil)
	if tooLong != nil {
		return false
	}
	if n, sendErr := unix.Write(fd, frame); err != nil || sendErr != nil || n != len(frame) {
		return false
	}
	if unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) != nil {
		return false
	}
	if q.dev.cfg.Encrypt {
		q.respondTLS(fd, t, time.Now().Add(handshakeTimeout))
		return true
	}
	return q.attach(fd, t, false) == nil
}

// preferences returns the preferences of this device. The first message is an empty Write,
// because siw supports no other that we do.
func (d *device) preferences() preferences {
	return preferences{markers: d.cfg.Markers, crc: !d.cfg.NoCRC && !d.cfg.Encrypt, p2p: true, ready: readyWrite, ird: readDepth, ord: readDepth}
}

func (d *listener) close() {
	if d.closed {
		return
	}
	d.closed = true
	for _, c := range d.callers {
		_ = unix.Close(c.fd)
	}
	d.callers = nil
	_ = unix.Close(d.fd)
}

// parseAddr parses the address of a peer. Without a token it is one of another
// implementation.
func parseAddr(a rdma.Addr) (at netip.AddrPort, token uint64, ours bool, err error) {
	host, name, ours := strings.Cut(string(a), "/")
	if at, err = netip.ParseAddrPort(host); err == nil && ours {
		if token, err = strconv.ParseUint(name, 16, 64); len(name) != 16 {
			err = strconv.ErrSyntax
		}
	}
	if err != nil {
		err = fmt.Errorf("iwarp: %q is not the address of a queue pair, such as 10.0.0.1:4000/0123456789abcdef: %w", a, err)
	}
	return at, token, ours, err
}
