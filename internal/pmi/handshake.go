package pmi

// Mutual authentication by the job's key. Both ends send a nonce, and each proves with
// HMAC-SHA256 over both nonces and the name of its side that it has the key. The dialing
// end proves first, so that the listening end gives an unauthenticated peer no proof to
// test guessed keys against.
//
//	rank → root   magic, nonce                    40 bytes
//	root → rank   magic, nonce                    40 bytes
//	rank → root   proof                           32 bytes
//	root → rank   'y' and proof, or 'n'           33 bytes, or 1
//
// All reads have a fixed length, nothing is parsed, and the caller sets a deadline. The
// proofs authenticate both ends at the start of the connection; TLS follows (channel.go)
// and protects the rest.

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	handshakeName  = "MUSTER "
	handshakeMagic = handshakeName + "2" // the digit is the version; 1 had no TLS
	nonceBytes     = 32
	openerBytes    = len(handshakeMagic) + nonceBytes
	proofAccepted  = 'y'
	proofRefused   = 'n'
	sideRank       = "rank"
	sideRoot       = "root"
)

var (
	errNotMuster = errors.New("the answer does not come from a rank 0 of Muster")
	errVersion   = errors.New("the other end runs another version of Muster; use one version for all ranks")
	errWrongKey  = errors.New("wrong key")
)

func proof(key []byte, side string, rankNonce, rootNonce []byte) []byte {
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, handshakeMagic+side)
	mac.Write(rankNonce)
	mac.Write(rootNonce)
	return mac.Sum(nil)
}

func opener() []byte {
	b := append(make([]byte, 0, openerBytes), handshakeMagic...)
	b = b[:openerBytes]
	rand.Read(b[len(handshakeMagic):])
	return b
}

// readOpener returns the other end's nonce.
func readOpener(conn io.Reader) ([]byte, error) {
	var b [openerBytes]byte
	// The magic is checked first, so that rank 0 does not wait for more data of a peer
	// with another protocol.
	if _, err := io.ReadFull(conn, b[:len(handshakeMagic)]); err != nil {
		return nil, err
	}
	switch magic := string(b[:len(handshakeMagic)]); {
	case magic == handshakeMagic:
	case strings.HasPrefix(magic, handshakeName):
		return nil, errVersion
	default:
		return nil, errNotMuster
	}
	_, err := io.ReadFull(conn, b[len(handshakeMagic):])
	return b[len(handshakeMagic):], err
}

// acceptHandshake is the handshake of rank 0 with a peer that has connected.
func acceptHandshake(conn io.ReadWriter, key []byte) error {
	theirs, err := readOpener(conn)
	if err != nil {
		return err
	}
	mine := opener()
	if _, err := conn.Write(mine); err != nil {
		return err
	}
	rootNonce := mine[len(handshakeMagic):]
	var given [sha256.Size]byte
	if _, err := io.ReadFull(conn, given[:]); err != nil {
		return err
	}
	if !hmac.Equal(given[:], proof(key, sideRank, theirs, rootNonce)) {
		conn.Write([]byte{proofRefused})
		return errWrongKey
	}
	_, err = conn.Write(append([]byte{proofAccepted}, proof(key, sideRoot, theirs, rootNonce)...))
	return err
}

// dialHandshake is the handshake of a rank with the peer at the root's address. It
// returns a refusedError for a wrong key.
func dialHandshake(conn io.ReadWriter, key []byte) error {
	mine := opener()
	if _, err := conn.Write(mine); err != nil {
		return err
	}
	theirs, err := readOpener(conn)
	if err != nil {
		return err
	}
	rankNonce := mine[len(handshakeMagic):]
	if _, err := conn.Write(proof(key, sideRank, rankNonce, theirs)); err != nil {
		return err
	}
	var answer [1 + sha256.Size]byte
	if _, err := io.ReadFull(conn, answer[:1]); err != nil {
		return err
	}
	if answer[0] == proofRefused {
		return &refusedError{fmt.Sprintf("wrong key: rank 0 has another %s than this process", EnvKey)}
	}
	if _, err := io.ReadFull(conn, answer[1:]); err != nil {
		return err
	}
	if answer[0] != proofAccepted || !hmac.Equal(answer[1:], proof(key, sideRoot, rankNonce, theirs)) {
		return &refusedError{fmt.Sprintf("wrong key: the process that listens there does not have this %s", EnvKey)}
	}
	return nil
}
