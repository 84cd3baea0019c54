package pmi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// wiretap is a TCP relay in front of rank 0 that records all bytes in both directions.
type wiretap struct {
	addr string
	mu   sync.Mutex
	seen []byte
}

func newWiretap(t *testing.T, root string) *wiretap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wiretap{addr: l.Addr().String()}
	var open sync.WaitGroup
	copyTo := func(dst, src net.Conn) {
		io.Copy(io.MultiWriter(dst, w), src)
		dst.(*net.TCPConn).CloseWrite()
	}
	open.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer near.Close()
				far, err := net.Dial("tcp", root)
				if err != nil {
					return // rank 0 does not listen yet: the rank retries
				}
				defer far.Close()
				var both sync.WaitGroup
				both.Go(func() { copyTo(far, near) })
				both.Go(func() { copyTo(near, far) })
				both.Wait()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		open.Wait()
	})
	return w
}

func (w *wiretap) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, b...)
	return len(b), nil
}

// readable returns the encoding in which a secret is in the recording, or "".
func (w *wiretap) readable(secret []byte) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for form, text := range map[string][]byte{
		"as it is": secret, "in hex": []byte(hex.EncodeToString(secret)),
		"in base64": []byte(base64.RawURLEncoding.EncodeToString(secret)), "in standard base64": []byte(base64.RawStdEncoding.EncodeToString(secret)),
	} {
		if bytes.Contains(w.seen, text) {
			return form
		}
	}
	return ""
}

// A recording of the connections to rank 0 contains neither the key nor any message.
func TestConnectionIsEncrypted(t *testing.T) {
	const key = "the key of this job, which is long enough"
	root := freePort(t)
	tap := newWiretap(t, root)
	clients := clientsOf(t, gather(t, 20*time.Second, 3, root, func(rank int, env map[string]string) map[string]string {
		env[EnvKey] = key
		if rank > 0 {
			env[EnvRoot] = tap.addr
		}
		return env
	}))
	value := []byte("a value that rank 1 has put, 42 bytes long")
	var wg sync.WaitGroup
	for rank, c := range clients {
		wg.Go(func() {
			if rank == 1 {
				if err := c.Put("card", value); err != nil {
					t.Error(err)
				}
			}
			if err := c.Fence(t.Context()); err != nil {
				t.Error(err)
				return
			}
			if got, err := c.Get(t.Context(), 1, "card"); err != nil || !bytes.Equal(got, value) {
				t.Errorf("rank %d gets %q, %v", rank, got, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for what, secret := range map[string]string{"the key": key, "a value": string(value), "a request": "cmd=put", "a fence": "cmd=barrier_in", "the hello": cmdHello, "the name of the job": clients[0].JobID()} {
		if form := tap.readable([]byte(secret)); form != "" {
			t.Errorf("%s can be read on the wire, %s", what, form)
		}
	}
	if !strings.HasPrefix(string(tap.seen), handshakeMagic) {
		t.Errorf("the recording must contain the handshake; it is %d bytes, %.40q", len(tap.seen), tap.seen)
	}
}

// Every rank rejects a key that can be guessed.
func TestWeakKey(t *testing.T) {
	for _, key := range []string{"k", "fifteen letters", "change-me-before-use"} {
		for rank := range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := Open(ctx, env(staticEnv(rank, 2, freePort(t), key)), Terms{})
			cancel()
			wantError(t, "a rank with the key "+key, err, EnvKey, "openssl rand -hex 32")
			if err != nil && len(key) > 1 && strings.Contains(err.Error(), key) {
				t.Errorf("the error must not contain the key: %v", err)
			}
		}
	}
}

// A man in the middle can relay the proofs of the key without having it, and establish a
// TLS session with each end: both ends detect it before they send any message.
func TestManInTheMiddle(t *testing.T) {
	t.Parallel() // waits for the timeout
	root := freePort(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	intercepted := make(chan []byte, 1)
	go func() {
		near, err := l.Accept()
		if err != nil {
			return
		}
		defer near.Close()
		far, err := net.Dial("tcp", root)
		for ; err != nil && t.Context().Err() == nil; far, err = net.Dial("tcp", root) {
			time.Sleep(5 * time.Millisecond) // until rank 0 listens on a real socket
		}
		defer far.Close()
		io.CopyN(far, near, int64(openerBytes))
		io.CopyN(near, far, int64(openerBytes))
		io.CopyN(far, near, 32)
		io.CopyN(near, far, 33)
		identity, _ := newIdentity()
		toRank := tls.Server(near, &tls.Config{Certificates: []tls.Certificate{identity}})
		toRoot := tls.Client(far, &tls.Config{InsecureSkipVerify: true})
		proof := make([]byte, 32)
		io.ReadFull(toRank, proof)
		toRoot.Write(proof)
		fromRoot, _ := io.ReadAll(toRoot) // rank 0 sends nothing
		toRank.Write(proof)               // try whether the rank accepts its own proof
		fromRank, _ := io.ReadAll(toRank) // the rank sends nothing either
		intercepted <- append(fromRoot, fromRank...)
	}()
	all := gather(t, late, 2, root, func(rank int, env map[string]string) map[string]string {
		if rank == 1 {
			env[EnvRoot] = l.Addr().String()
		}
		return env
	})
	wantError(t, "rank 1", all[1].err, "intercepts the connection")
	wantError(t, "rank 0", all[0].err, "rank 1 did not join", "intercepts the connection")
	if got := <-intercepted; len(got) > 0 {
		t.Errorf("the man in the middle has read %q", got)
	}
}

// Ranks of another version get an error of their own.
func TestHandshakeVersion(t *testing.T) {
	_, err := readOpener(strings.NewReader("MUSTER 1" + strings.Repeat("n", nonceBytes)))
	wantError(t, "a rank of version 1", err, "another version of Muster")
}
