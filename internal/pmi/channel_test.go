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

// wiretap is a TCP relay in front of rank 0 that records all bytes, both ways.
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
					return // rank 0 does not listen yet: the rank tries again
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

// readable tells in which form a secret is in the recording, if in any.
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

// Whoever records the connections to rank 0 learns neither the key nor what the
// ranks tell each other.
func TestAWiretapReadsNothing(t *testing.T) {
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
		t.Errorf("the recording must hold the conversation; it is %d bytes, %.40q", len(tap.seen), tap.seen)
	}
}

// A key that can be guessed is refused, by every rank for itself.
func TestAWeakKeyIsRefused(t *testing.T) {
	for _, key := range []string{"k", "fifteen letters", "change-me-before-use"} {
		for rank := range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := Open(ctx, env(placeEnv(rank, 2, freePort(t), key)))
			cancel()
			says(t, "a rank with the key "+key, err, EnvKey, "openssl rand -hex 32")
			if err != nil && len(key) > 1 && strings.Contains(err.Error(), key) {
				t.Errorf("the error must not show the key: %v", err)
			}
		}
	}
}

// Somebody in the middle can pass on the proofs of the key, which he does not know, and
// make a TLS session with each end: both ends find out before anything is said.
func TestAnInterceptorIsRefused(t *testing.T) {
	t.Parallel() // it waits for the timeout
	root := freePort(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	overheard := make(chan []byte, 1)
	go func() {
		near, err := l.Accept()
		if err != nil {
			return
		}
		defer near.Close()
		far, err := net.Dial("tcp", root)
		for ; err != nil && t.Context().Err() == nil; far, err = net.Dial("tcp", root) {
			time.Sleep(5 * time.Millisecond)
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
		heard, _ := io.ReadAll(toRoot) // rank 0 says nothing
		toRank.Write(proof)            // perhaps its own proof satisfies the rank
		said, _ := io.ReadAll(toRank)  // nor does the rank
		overheard <- append(heard, said...)
	}()
	all := gather(t, late, 2, root, func(rank int, env map[string]string) map[string]string {
		if rank == 1 {
			env[EnvRoot] = l.Addr().String()
		}
		return env
	})
	says(t, "rank 1", all[1].err, "intercepts the connection")
	says(t, "rank 0", all[0].err, "rank 1 did not come", "intercepts the connection")
	if got := <-overheard; len(got) > 0 {
		t.Errorf("somebody in the middle has read %q", got)
	}
}

// Ranks of another version are told apart from strangers.
func TestAnotherVersionIsTold(t *testing.T) {
	_, err := readOpener(strings.NewReader("MUSTER 1" + strings.Repeat("n", nonceBytes)))
	says(t, "a rank of version 1", err, "another version of Muster")
}
