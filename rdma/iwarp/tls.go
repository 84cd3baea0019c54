//go:build linux

package iwarp

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// Encryption: TLS 1.3 between MPA and TCP. The request and the reply of MPA go first, in
// cleartext, with the proof that both ends have the job's key, so a foreign connection
// costs no TLS state; they also state that TLS follows. Then both ends perform the TLS
// handshake, outside of the device's lock: the initiator in Connect, the responder in a
// goroutine. From then on TLS carries the frames of MPA.
//
// Each end presents a certificate whose key is derived from the job's key and the
// addresses of the two queue pairs, and accepts no other: only holders of the job's key
// can connect, and a connection cannot be passed off as another one.
//
// crypto/tls requires a connection that blocks. It has one until the handshake is done;
// then one whose Read returns a temporary error when there is no data, which TLS survives,
// and whose Write buffers its data until the socket accepts it.

// secret is the encryption of one connection.
type secret struct {
	tls   *tls.Conn
	fd    int
	live  bool         // the handshake is done: nothing blocks any more
	alive func() error // during the handshake: the reason to stop
	out   []byte       // encrypted, for the socket
	sent  int          // of out
	whole int          // bytes of frames that are in out
	given uint64       // bytes that the socket has accepted since the handshake
}

// handshakePause is how long a handshake waits before it checks whether to continue.
const handshakePause = 20 * time.Millisecond

// tlsHandshake encrypts a connection. It blocks, at most until alive returns an error.
func (cfg *Config) tlsHandshake(fd int, initiator bool, to, from rdma.Addr, alive func() error) (*secret, error) {
	certificate, public, err := cfg.certificate(to, from)
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate},
		SessionTicketsDisabled: true, DynamicRecordSizingDisabled: true,
		ClientAuth:         tls.RequireAnyClientCert,
		InsecureSkipVerify: true, // no name and no authority: VerifyConnection requires one key
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) > 0 && public.Equal(state.PeerCertificates[0].PublicKey) {
				return nil
			}
			return errors.New("the peer's certificate is not the one of this job and connection")
		},
	}
	s := &secret{fd: fd, alive: alive}
	if initiator {
		s.tls = tls.Client(s, settings)
	} else {
		s.tls = tls.Server(s, settings)
	}
	if err := s.tls.HandshakeContext(context.Background()); err != nil {
		return nil, fmt.Errorf("encrypt the connection: %w", err)
	}
	s.live, s.alive = true, nil
	return s, nil
}

// certificate returns the certificate of both ends of a connection. Its key is as secret
// as the job's.
func (cfg *Config) certificate(to, from rdma.Addr) (tls.Certificate, ed25519.PublicKey, error) {
	seed, err := hkdf.Key(sha256.New, cfg.Key, nil, "muster/1 iwarp tls\x00"+string(to)+"\x00"+string(from), ed25519.SeedSize)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("derive a key for TLS: %w", err)
	}
	private := ed25519.NewKeyFromSeed(seed)
	public := private.Public().(ed25519.PublicKey)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("create a certificate for TLS: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: private}, public, nil
}

// respondTLS is the responder's side, in its own goroutine. The queue pair is reserved
// for the caller meanwhile.
func (q *queuePair) respondTLS(fd int, t terms, until time.Time) {
	d := q.dev
	d.handshakes.Add(1)
	q.greeted = true
	to, from := q.addr, q.peer
	alive := func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		switch {
		case d.Closed || q.state == closed || q.peer != from:
			return rdma.ErrClosed
		case time.Now().After(until):
			return context.DeadlineExceeded
		}
		return nil
	}
	go func() {
		defer d.handshakes.Done()
		s, err := d.cfg.tlsHandshake(fd, false, to, from, alive)
		d.mu.Lock()
		defer d.mu.Unlock()
		q.greeted = false
		if err == nil && !d.Closed && q.state == unconnected && q.peer == from {
			q.secret = s
			if q.attach(fd, t, false) == nil {
				return
			}
			q.secret = nil
		}
		if !q.bound {
			q.peer = "" // as if it had not connected
		}
		_ = unix.Close(fd)
	}()
}

// wouldBlock is the error after which TLS can continue: there is no data for now.
type wouldBlock struct{}

func (wouldBlock) Error() string   { return "iwarp: the socket has nothing for now" }
func (wouldBlock) Timeout() bool   { return true }
func (wouldBlock) Temporary() bool { return true }

// Read implements net.Conn for TLS.
func (s *secret) Read(b []byte) (int, error) {
	for {
		n, err := read(s.fd, b)
		switch {
		case err == nil && n == 0:
			return 0, io.EOF
		case err == nil:
			return n, nil
		case err != unix.EAGAIN && err != unix.EINTR:
			return 0, err
		case s.live:
			return 0, wouldBlock{}
		}
		if err := s.pause(unix.POLLIN); err != nil {
			return 0, err
		}
	}
}

// Write implements net.Conn for TLS.
func (s *secret) Write(b []byte) (int, error) {
	if s.live {
		s.out = append(s.out, b...)
		return len(b), nil
	}
	for done := 0; done < len(b); {
		n, err := send(s.fd, b[done:])
		switch {
		case err == nil:
			done += n
			continue
		case err != unix.EAGAIN && err != unix.EINTR:
			return done, err
		}
		if err := s.pause(unix.POLLOUT); err != nil {
			return done, err
		}
	}
	return len(b), nil
}

// pause waits for the socket, or for a reason to stop.
func (s *secret) pause(events int16) error {
	look := []unix.PollFd{{Fd: int32(s.fd), Events: events}}
	if _, err := unix.Poll(look, int(handshakePause/time.Millisecond)); err != nil && err != unix.EINTR {
		return err
	}
	return s.alive()
}

// gather is the package's gather for encrypted connections: the pieces are encrypted at
// once, and count as accepted when the socket has all of the result.
func (s *secret) gather(pieces []unix.Iovec) (int, error) {
	if s.sent == len(s.out) {
		s.out, s.sent, s.whole = s.out[:0], 0, 0
		for i := range pieces {
			b := bytesOf(&pieces[i])
			if _, err := s.tls.Write(b); err != nil {
				return 0, err
			}
			s.whole += len(b)
		}
	}
	for s.sent < len(s.out) {
		n, err := send(s.fd, s.out[s.sent:])
		if err != nil {
			return 0, err
		}
		s.sent += n
		s.given += uint64(n)
	}
	return s.whole, nil
}

// read is the package's read for encrypted connections. TLS may hold more than the socket.
func (s *secret) read(b []byte) (int, error) {
	n, err := s.tls.Read(b)
	switch {
	case n > 0 || err == nil:
		return n, nil
	case err == error(wouldBlock{}):
		return 0, unix.EAGAIN
	case errors.Is(err, io.EOF):
		return 0, nil
	}
	return 0, err
}

// end sends a close notification, if the socket accepts it.
func (s *secret) end() {
	if s.sent == len(s.out) && s.tls.CloseWrite() == nil {
		_, _ = send(s.fd, s.out[s.sent:])
	}
}

// The rest of net.Conn, which crypto/tls does not need here.

func (s *secret) Close() error                     { return nil }
func (s *secret) LocalAddr() net.Addr              { return nil }
func (s *secret) RemoteAddr() net.Addr             { return nil }
func (s *secret) SetDeadline(time.Time) error      { return nil }
func (s *secret) SetReadDeadline(time.Time) error  { return nil }
func (s *secret) SetWriteDeadline(time.Time) error { return nil }
