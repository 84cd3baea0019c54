package pmi

// The channel between a rank and rank 0: TLS 1.3, from the proofs of handshake.go to the
// end of the job. The key exchange of TLS is ephemeral, so a recording stays unreadable
// even if the job's key leaks later.
//
// The certificate of rank 0 is generated for this job and self-signed; it authenticates
// nothing. Instead both ends prove that they have the key and that they are the two ends
// of the same TLS session: HMAC-SHA256 with the key over the channel binding that TLS
// exports (RFC 9266), first the rank, then rank 0. A man in the middle who relays the
// proofs of handshake.go has two sessions with different exports.
//
//	rank → root   proof of the session            32 bytes
//	root → rank   proof of the session            32 bytes

import (
	"crypto/ed25519"
	"crypto/hmac"
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
)

// The label of RFC 9266 section 2, and the names of the sides in the proofs.
const (
	bindingLabel = "EXPORTER-Channel-Binding"
	bindingBytes = 32
	sessionRank  = "rank session"
	sessionRoot  = "root session"
)

// errIntercepted reports that the proofs of a session do not match.
var errIntercepted = errors.New("the other end has the key but another TLS session: a man in the middle intercepts the connection")

// newIdentity generates the certificate of rank 0 for one job.
func newIdentity() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("generate a key for TLS: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("create a certificate for TLS: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: private}, nil
}

// encryptAsRoot starts TLS on a connection whose other end has proven the key.
func encryptAsRoot(conn net.Conn, key []byte, identity tls.Certificate) (*tls.Conn, error) {
	c := tls.Server(conn, &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{identity}, SessionTicketsDisabled: true,
	})
	binding, err := tlsHandshake(c)
	if err != nil {
		return nil, err
	}
	if err := checkSession(c, key, sessionRank, binding); err != nil {
		return nil, err
	}
	_, err = c.Write(proof(key, sessionRoot, binding, nil))
	return c, err
}

// encryptAsRank does the same at the dialing end.
func encryptAsRank(conn net.Conn, key []byte) (*tls.Conn, error) {
	c := tls.Client(conn, &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // no name and no authority: the proofs of the session authenticate both ends
	})
	binding, err := tlsHandshake(c)
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(proof(key, sessionRank, binding, nil)); err != nil {
		return nil, err
	}
	return c, checkSession(c, key, sessionRoot, binding)
}

// tlsHandshake establishes the session and returns its channel binding.
func tlsHandshake(c *tls.Conn) (binding []byte, err error) {
	if err := c.Handshake(); err != nil { // the caller has set a deadline
		return nil, fmt.Errorf("TLS: %w", err)
	}
	state := c.ConnectionState()
	return state.ExportKeyingMaterial(bindingLabel, nil, bindingBytes)
}

func checkSession(c *tls.Conn, key []byte, side string, binding []byte) error {
	var given [sha256.Size]byte
	if _, err := io.ReadFull(c, given[:]); err != nil {
		return err
	}
	if !hmac.Equal(given[:], proof(key, side, binding, nil)) {
		return errIntercepted
	}
	return nil
}
