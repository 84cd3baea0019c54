package pmi

// The channel between a rank and rank 0: TLS 1.3, from the proofs of handshake.go to
// the end of the job. The key exchange of TLS is ephemeral, so a recording stays
// unreadable even to who learns the job's key later.
//
// The certificate of rank 0 is made for this job and signed by nobody; it proves
// nothing. Both ends prove instead that they know the key and that they are the two
// ends of the same TLS session: HMAC-SHA256 with the key over what TLS exports for
// channel binding (RFC 9266), first the rank, then rank 0. Somebody in the middle
// who passes on the proofs of handshake.go has two sessions with different exports.
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

// The label of RFC 9266 section 2, and the words for the sides in its proofs.
const (
	bindingLabel = "EXPORTER-Channel-Binding"
	bindingBytes = 32
	sessionRank  = "rank session"
	sessionRoot  = "root session"
)

// errIntercepted says that the proofs of a session do not match.
var errIntercepted = errors.New("the other end knows the key but has another TLS session: somebody on the way intercepts the connection")

// newIdentity makes the certificate of rank 0 for one job.
func newIdentity() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key for TLS: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate for TLS: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: private}, nil
}

// encryptAsRoot makes a channel of a connection whose other end has proven the key.
func encryptAsRoot(conn net.Conn, key []byte, identity tls.Certificate) (*tls.Conn, error) {
	c := tls.Server(conn, &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{identity}, SessionTicketsDisabled: true,
	})
	binding, err := shake(c)
	if err != nil {
		return nil, err
	}
	if err := checkSession(c, key, sessionRank, binding); err != nil {
		return nil, err
	}
	_, err = c.Write(proof(key, sessionRoot, binding, nil))
	return c, err
}

// encryptAsRank is the same at the end that has dialled.
func encryptAsRank(conn net.Conn, key []byte) (*tls.Conn, error) {
	c := tls.Client(conn, &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // no name and no authority: the proofs of the session authenticate both ends
	})
	binding, err := shake(c)
	if err != nil {
		return nil, err
	}
	if _, err := c.Write(proof(key, sessionRank, binding, nil)); err != nil {
		return nil, err
	}
	return c, checkSession(c, key, sessionRoot, binding)
}

// shake makes the session and gives what identifies it.
func shake(c *tls.Conn) (binding []byte, err error) {
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
