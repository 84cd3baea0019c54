package pmi

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

// recordCall calls a port through a proxy, and returns what the caller has sent.
func recordCall(t *testing.T, v JoinToken) []byte {
	t.Helper()
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	var sent bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		from, err := proxy.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", v.addrs()[0])
		if err != nil {
			from.Close()
			return
		}
		go func() {
			io.Copy(from, to)
			from.Close()
		}()
		io.Copy(io.MultiWriter(to, &sent), from)
		to.Close()
	}()
	through := v
	through.Network, through.Addrs = "", []string{proxy.Addr().String()}
	if _, _, err := through.Call(t.Context(), 2); err != nil {
		t.Fatalf("a call through a proxy: %v", err)
	}
	<-done
	return sent.Bytes()
}

// TestStrangersAtPort lets 1,000 strangers come to a port: idle ones, all at once, those with wrong keys,
// and replays of a call that was accepted. None is accepted, and who has the key is.
func TestStrangersAtPort(t *testing.T) {
	const each = 1000 / 3
	p, err := OpenPort()
	if err != nil {
		t.Fatal(err)
	}
	v, err := ParseJoinToken(p.String())
	if err != nil {
		t.Fatal(err)
	}
	meet := JoinToken{strings.Repeat("M", minKey), "", []string{"1.2.3.4:5"}}
	accepted := make(chan int, 1)
	accept := func() {
		size, err := p.Accept(t.Context(), 1, meet)
		if err != nil {
			t.Errorf("Accept: %v", err)
		}
		accepted <- size
	}
	go accept()
	sent := recordCall(t, v)
	if n := <-accepted; n != 2 || len(sent) <= openerBytes {
		t.Fatalf("accepted a group of %d ranks, which has sent %d bytes", n, len(sent))
	}
	before := runtime.NumGoroutine()
	go accept()
	var idle []net.Conn
	for range each + 1 {
		conn, err := net.Dial("tcp", v.addrs()[0])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		idle = append(idle, conn)
	}
	wrong := v
	wrong.Key = strings.Repeat("A", len(v.Key))
	for range each {
		if _, _, err := wrong.Call(t.Context(), 3); err == nil {
			t.Fatal("a wrong key was accepted")
		}
		conn, err := net.Dial("tcp", v.addrs()[0])
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(handshakeTimeout))
		conn.Write(sent) // the port may have closed the connection
		got, _ := io.ReadAll(conn)
		conn.Close()
		if len(got) != openerBytes+1 || got[openerBytes] != proofRefused {
			t.Fatalf("the port has answered %d bytes to a replay, want its nonce and a refusal", len(got))
		}
	}
	select {
	case n := <-accepted:
		t.Fatalf("a stranger was accepted, with a group of %d ranks", n)
	default:
	}
	if size, _, err := v.Call(t.Context(), 5); size != 1 || err != nil {
		t.Errorf("the call of who has the key: %d, %v", size, err)
	}
	if n := <-accepted; n != 5 {
		t.Errorf("accepted a group of %d ranks, want that of 5", n)
	}
	p.Close()
	for _, conn := range idle {
		conn.Close()
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines are left, %d before the strangers came", n, before)
	}
}
