package iwarp

import (
	"crypto/hmac"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The listener: a listening socket, and callers whose request is not complete yet. Connect
// services it while it waits, so that two ranks that connect in different orders do not
// deadlock. A caller costs a descriptor and half a kilobyte until it has proved that it
// has the job's key; their number and time are limited. A new caller displaces the oldest
// one, so a flood of silent connections delays no peer: a peer's request follows its
// connection at once. A displaced caller sees a reset, and a peer then dials again.

type listener struct {
	sock    listenSocket
	at      netip.AddrPort
	callers []*caller
	closed  bool
}

// caller is an accepted connection whose request has not arrived yet.
type caller struct {
	fd      conn
	since   time.Time
	watched bool // it ends waits
	buf     [startupMax]byte
	n       int
}

const (
	mostCallers      = 64
	mostAccepts      = 256 // per call of serviceListenerLocked, which holds the device's lock
	handshakeTimeout = 5 * time.Second
	ethernetSegment  = 1448 // the longest TCP segment, if it is unknown
)

// open listens on a port, chosen by the kernel if it is 0.
func (l *listener) open(d *device, at netip.AddrPort) (err error) {
	if l.sock, l.at, err = listen(d, at); err != nil {
		l.closed = true
		return fmt.Errorf("iwarp: %w; Config.Address must be an address of this host, and Config.Port free", err)
	}
	return nil
}

// admitGuests lets callers that ask for a token connect at any time: the listener and callers
// end waits from now on.
func (d *device) admitGuests(token uint64, admit func(c conn, req *startup, from rdma.Addr) bool) {
	d.guestToken, d.admitGuest = token, admit
	d.sockets.watchListener(d.listener.sock)
}

// watchCaller lets the request of a caller end waits, if callers may come at any time.
func (d *device) watchCaller(c *caller, on bool) {
	if d.admitGuest == nil || c.watched == on {
		return
	}
	if c.watched = on; on {
		d.sockets.watch(c.fd, 0, readEvent)
	} else {
		d.sockets.watch(c.fd, readEvent, 0)
	}
}

// serviceListenerLocked accepts callers and reads their requests.
func (d *device) serviceListenerLocked(now time.Time) {
	listener := &d.listener
	kept := listener.callers[:0]
	for _, c := range listener.callers {
		switch {
		case d.readRequest(c):
		case now.Sub(c.since) > handshakeTimeout:
			c.fd.close()
		default:
			kept = append(kept, c)
		}
	}
	clear(listener.callers[len(kept):])
	listener.callers = kept
	for range mostAccepts {
		fd, ok := listener.sock.accept()
		if !ok {
			break
		}
		c := &caller{fd: fd, since: now}
		if d.readRequest(c) {
			continue
		}
		if len(listener.callers) == mostCallers {
			if oldest := listener.callers[0]; !d.readRequest(oldest) {
				oldest.fd.displace()
			}
			listener.callers = append(listener.callers[:0], listener.callers[1:]...)
		}
		d.watchCaller(c, true)
		listener.callers = append(listener.callers, c)
	}
}

// readRequest reads from a caller and reports whether it is finished with it.
func (d *device) readRequest(c *caller) bool {
	n, err := read(c.fd, c.buf[c.n:])
	if notNow(err) {
		return false
	}
	if err != nil || n == 0 {
		c.fd.close()
		return true
	}
	c.n += n
	req, n, err := parseStartup(c.buf[:c.n], false)
	if err == nil && n == 0 {
		return false
	}
	d.watchCaller(c, false) // its queue pair watches it
	// Bytes after a request are invalid: RFC 5044 section 7.1.2.
	if err != nil || n != c.n || !d.admit(c.fd, &req) {
		c.fd.close()
	}
	return true
}

// admit assigns the requested queue pair to a caller, if it is permitted.
func (d *device) admit(fd conn, req *startup) bool {
	token, from, ours := d.cfg.readGreeting(req.private)
	if d.admitGuest != nil && ours && token == d.guestToken {
		return d.admitGuest(fd, req, from)
	}
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
func (q *queuePair) accept(fd conn, req *startup, private []byte) bool {
	w := q.dev.preferences()
	rep, t, err := w.answer(req, private)
	frame, tooLong := rep.append(nil)
	if tooLong != nil {
		return false
	}
	if n, sendErr := send(fd, frame); err != nil || sendErr != nil || n != len(frame) {
		return false
	}
	if fd.noDelay() != nil {
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

func (l *listener) close() {
	if l.closed {
		return
	}
	l.closed = true
	for _, c := range l.callers {
		c.fd.close()
	}
	l.callers = nil
	l.sock.close()
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
