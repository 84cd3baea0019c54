package iwarp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/guard"
)

// Connecting. Both ends call Connect; the one with the smaller address dials and is the
// MPA initiator, the other waits on its listener. The private data of request and reply is
// a greeting: the requested queue pair, the sender's address, and a proof that both have
// the job's key. A queue pair is connected once and its token is random, so an intercepted
// greeting cannot be reused. A peer of another implementation is not greeted: it is
// dialled by its address alone, or accepted without one (Anybody).

const (
	greetingMagic = "muster/1"
	secretMagic   = "muster/e" // same length; TLS follows
	greetRequest  = "request"
	greetReply    = "reply"
	greetingFixed = len(greetingMagic) + 8 + sha256.Size // followed by the sender's address

	connectPause = 5 * time.Millisecond // between checks of the context
)

// greeting returns the private data of one direction.
func (cfg *Config) greeting(direction string, token uint64, to, from rdma.Addr) []byte {
	magic := cfg.magic()
	proof := hmac.New(sha256.New, cfg.Key)
	for _, part := range []string{direction, string(to), string(from), magic} {
		proof.Write([]byte(part))
		proof.Write([]byte{0})
	}
	b := append([]byte(magic), binary.BigEndian.AppendUint64(nil, token)...)
	b = proof.Sum(b)
	return append(b, from...)
}

// magic returns the magic that states whether TLS follows. Both ends must agree.
func (cfg *Config) magic() string {
	if cfg.Encrypt {
		return secretMagic
	}
	return greetingMagic
}

// readGreeting parses the requested token and the sender; it does not verify the proof.
func (cfg *Config) readGreeting(b []byte) (token uint64, from rdma.Addr, ok bool) {
	if len(b) < greetingFixed || string(b[:len(greetingMagic)]) != cfg.magic() {
		return 0, "", false
	}
	return binary.BigEndian.Uint64(b[len(greetingMagic):]), rdma.Addr(b[greetingFixed:]), true
}

func (q *queuePair) Connect(ctx context.Context, peer rdma.Addr) error {
	d := dial{q: q, peer: peer, fd: noConn()}
	if peer != Anybody {
		var err error
		if d.at, d.token, d.ours, err = parseAddr(peer); err != nil {
			return err
		}
	}
	if done, err := q.bind(peer, d.ours); done || err != nil {
		return err
	}
	var err error
	if peer == Anybody || d.ours && peer < q.addr {
		err = q.await(ctx, func() (bool, error) { return q.state != unconnected, nil }, func() (conn, uint32) { return noConn(), 0 })
	} else {
		err = d.call(ctx)
	}
	if err == nil {
		return nil
	}
	q.dev.mu.Lock()
	q.peer, q.bound = "", false
	q.dev.mu.Unlock()
	return fmt.Errorf("iwarp: connect %s to %s: %w; check that the peer calls Connect too and has the same key and Config.Encrypt", q.addr, peer, err)
}

// bind records the peer of the queue pair. done reports whether that peer has connected
// already.
func (q *queuePair) bind(peer rdma.Addr, ours bool) (done bool, err error) {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	switch {
	case q.state == closed:
		return false, rdma.ErrClosed
	case q.peer == peer && q.state != unconnected:
		q.bound = true
		return true, nil
	case q.bound || q.peer != "" && q.peer != peer:
		return false, fmt.Errorf("iwarp: connect %s to %s: it is bound to %s already; make another queue pair", q.addr, peer, q.peer)
	case peer == q.addr:
		return false, fmt.Errorf("iwarp: connect %s to itself: an RC queue pair needs another one", peer)
	case !ours && len(q.dev.cfg.Key) > 0:
		return false, fmt.Errorf("iwarp: connect %s to %s: a peer of another implementation cannot prove that it has the key; open a device without one for it", q.addr, peer)
	}
	if q.dev.isBarred(peer, true) {
		return false, fmt.Errorf("iwarp: connect %s to %s: that peer has attempted %d forbidden accesses; nothing more is accepted from it", q.addr, peer, guard.MaxStrikes)
	}
	q.peer, q.bound = peer, true
	return false, nil
}

// await repeats a step, with the device's lock held and the listener serviced, until it is
// done. look returns what else to wait for.
func (q *queuePair) await(ctx context.Context, step func() (bool, error), look func() (conn, uint32)) error {
	for {
		q.dev.mu.Lock()
		done, err := false, error(rdma.ErrClosed)
		if !q.dev.Closed && q.state != closed {
			q.dev.serviceListenerLocked(time.Now())
			done, err = step()
		}
		listener := q.dev.listener.sock
		q.dev.mu.Unlock()
		if done || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c, event := look()
		if err := listener.await(c, event, connectPause); err != nil {
			return fmt.Errorf("wait for the peer: %w", err)
		}
	}
}

// dial is the initiator's side of setting up.
type dial struct {
	q     *queuePair
	peer  rdma.Addr
	at    netip.AddrPort
	token uint64
	ours  bool // the peer uses this package, and is greeted
	fd    conn
	asked bool
	buf   [startupMax]byte
	n     int
	terms terms
}

// call establishes the connection. A peer with many foreign connections resets some that
// it has not read from yet (listener.go): then call dials again.
func (d *dial) call(ctx context.Context) error {
	for {
		err := d.try(ctx)
		if !wasReset(err) || ctx.Err() != nil {
			return err
		}
		time.Sleep(connectPause)
	}
}

// try dials once.
func (d *dial) try(ctx context.Context) (err error) {
	d.asked, d.n = false, 0
	if d.fd, err = startDial(d.q.dev, d.at); err == nil {
		err = d.q.await(ctx, d.step, d.look)
	}
	if err == nil {
		err = d.begin(ctx)
	}
	if err != nil && !d.fd.none() {
		d.fd.close()
	}
	return err
}

var errNoReply = errors.New("the peer closed the connection instead of replying")

// look returns the event that step waits for.
func (d *dial) look() (conn, uint32) {
	if d.asked {
		return d.fd, readEvent
	}
	return d.fd, writeEvent // it is not connected yet
}

// step proceeds as far as it can: it sends the request when TCP is connected, and reads
// the reply.
func (d *dial) step() (bool, error) {
	dev := d.q.dev
	w := dev.preferences()
	if !d.asked {
		if ready, err := d.fd.checkEstablished(); !ready || err != nil {
			return false, err
		}
		var private []byte
		if d.ours {
			private = dev.cfg.greeting(greetRequest, d.token, d.peer, d.q.addr)
		}
		req := w.request(private)
		frame, err := req.append(nil)
		if err != nil {
			return false, err
		}
		if n, err := send(d.fd, frame); err != nil || n != len(frame) {
			return false, fmt.Errorf("send the MPA request: %d of %d bytes, %w", n, len(frame), err)
		}
		d.asked = true
	}
	n, err := read(d.fd, d.buf[d.n:])
	switch {
	case notNow(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the MPA reply: %w", err)
	case n == 0:
		return false, errNoReply
	}
	d.n += n
	rep, n, err := parseStartup(d.buf[:d.n], true)
	if err != nil || n == 0 {
		return false, err
	}
	t, err := w.conclude(&rep)
	if err != nil {
		return false, err
	}
	if d.ours && !hmac.Equal(rep.private, dev.cfg.greeting(greetReply, d.token, d.peer, d.q.addr)) {
		return false, errors.New("the peer does not prove that it has the job's key")
	}
	if n != d.n { // RFC 6581: the responder waits for our first message
		return false, errors.New("the peer sends frames too early")
	}
	d.terms = t
	return true, nil
}

// begin encrypts the connection, if configured, and attaches it to the queue pair.
func (d *dial) begin(ctx context.Context) (err error) {
	q := d.q
	var s *secret
	if q.dev.cfg.Encrypt {
		if s, err = q.dev.cfg.tlsHandshake(d.fd, true, d.peer, q.addr, ctx.Err); err != nil {
			return err
		}
	}
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	if q.dev.Closed || q.state != unconnected {
		return rdma.ErrClosed
	}
	q.secret = s
	if err := q.attach(d.fd, d.terms, true); err != nil {
		return err
	}
	q.transmit()
	return nil
}
