package iwarp

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The handshake of encrypted connections: that of TLS 1.3. The request and the reply of MPA
// go first, in cleartext, with the proof that both ends have the job's key, so a foreign
// connection costs no TLS state; they also state that TLS follows. Then both ends perform the
// TLS handshake, outside of the device's lock: the initiator in Connect, the responder in a
// goroutine. It yields the secrets with which secret.go encrypts the frames of MPA.
//
// Each end presents a certificate whose key is derived from the job's key and the
// addresses of the two queue pairs, and accepts no other: only holders of the job's key
// can connect, and a connection cannot be passed off as another one.

// handshake is the connection during the TLS handshake, which blocks.
type handshake struct {
	fd    conn
	alive func() error // the reason to stop
	head  [5]byte      // of the TLS record that is being read (RFC 8446 section 5.1)
	shown int          // bytes of head that TLS has
	left  int          // bytes of the record behind head
}

// handshakePause is how long a handshake waits before it checks whether to continue.
const handshakePause = 20 * time.Millisecond

// tlsHandshake encrypts a connection. It blocks, at most until alive returns an error.
func (cfg *Config) tlsHandshake(fd conn, initiator bool, to, from rdma.Addr, alive func() error) (*secret, error) {
	certificate, public, err := cfg.certificate(to, from)
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate},
		SessionTicketsDisabled: true,
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // no name and no authority: VerifyConnection requires one key
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) > 0 && public.Equal(state.PeerCertificates[0].PublicKey) {
				return nil
			}
			return errors.New("the peer's certificate is not the one of this job and connection")
		},
	}
	h := &handshake{fd: fd, alive: alive}
	h.shown = len(h.head)
	session := tls.Server(h, settings)
	if initiator {
		session = tls.Client(h, settings)
	}
	if err := session.HandshakeContext(context.Background()); err != nil {
		return nil, fmt.Errorf("encrypt the connection: %w", err)
	}
	state := session.ConnectionState()
	secrets, err := state.ExportKeyingMaterial(exporterLabel, nil, 2*secretLen)
	if err != nil {
		return nil, fmt.Errorf("encrypt the connection: %w", err)
	}
	return newSecret(fd, initiator, secrets)
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
func (q *queuePair) respondTLS(fd conn, t terms, until time.Time) {
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
		fd.close()
		if q.works.count > 0 && q.state == unconnected { // nobody else connects it
			q.abandon()
		}
	}()
}

// Read implements net.Conn for TLS. It reads one record at most: what follows the handshake
// is not for TLS.
func (h *handshake) Read(b []byte) (int, error) {
	if h.shown == len(h.head) && h.left == 0 {
		for got := 0; got < len(h.head); {
			n, err := h.read(h.head[got:])
			if err != nil {
				return 0, err
			}
			got += n
		}
		h.shown, h.left = 0, int(binary.BigEndian.Uint16(h.head[3:]))
	}
	if h.shown < len(h.head) {
		n := copy(b, h.head[h.shown:])
		h.shown += n
		return n, nil
	}
	n, err := h.read(b[:min(len(b), h.left)])
	h.left -= n
	return n, err
}

// read blocks until the socket has something.
func (h *handshake) read(b []byte) (int, error) {
	for {
		n, err := read(h.fd, b)
		switch {
		case err == nil && n == 0:
			return 0, io.EOF
		case err == nil:
			return n, nil
		case !notNow(err):
			return 0, err
		}
		if err := h.pause(readEvent); err != nil {
			return 0, err
		}
	}
}

// Write implements net.Conn for TLS.
func (h *handshake) Write(b []byte) (int, error) {
	for done := 0; done < len(b); {
		n, err := send(h.fd, b[done:])
		switch {
		case err == nil:
			done += n
			continue
		case !notNow(err):
			return done, err
		}
		if err := h.pause(writeEvent); err != nil {
			return done, err
		}
	}
	return len(b), nil
}

// pause waits for the socket, or for a reason to stop.
func (h *handshake) pause(event uint32) error {
	if err := h.fd.await(event, handshakePause); err != nil {
		return err
	}
	return h.alive()
}

// The rest of net.Conn, which crypto/tls does not need here.

func (h *handshake) Close() error                     { return nil }
func (h *handshake) LocalAddr() net.Addr              { return nil }
func (h *handshake) RemoteAddr() net.Addr             { return nil }
func (h *handshake) SetDeadline(time.Time) error      { return nil }
func (h *handshake) SetReadDeadline(time.Time) error  { return nil }
func (h *handshake) SetWriteDeadline(time.Time) error { return nil }
