package capture

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// The recording contains the traffic of two sockets over loopback exactly once.
func TestRecordLoopback(t *testing.T) {
	host := netip.MustParseAddr("127.45.67.89")
	r, err := Record("lo", host)
	if errors.Is(err, ErrNoRights) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", netip.AddrPortFrom(host, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	question, answer := strings.Repeat("question", 20_000), strings.Repeat("answer", 10)
	ended := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.ReadFull(c, make([]byte, len(question)))
			_, sent := io.WriteString(c, answer)
			err = errors.Join(err, sent, c.Close())
		}
		ended <- err
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, question); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	frames, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	conversations, err := Conversations(frames)
	if err != nil {
		t.Fatal(err)
	}
	if len(conversations) != 1 || conversations[0].Server.String() != l.Addr().String() {
		t.Fatalf("%d conversations are in the recording of %d frames, want the one with %v", len(conversations), len(frames), l.Addr())
	}
	if got := &conversations[0]; string(got.Bytes(Client)) != question || string(got.Bytes(Server)) != answer {
		t.Errorf("%d and %d bytes were recorded, %d and %d were sent", len(got.Bytes(Client)), len(got.Bytes(Server)), len(question), len(answer))
	}
	bytes := 0
	for _, f := range frames {
		bytes += len(f.Data)
	}
	if bytes > 2*(len(question)+len(answer)) {
		t.Errorf("%d bytes were recorded: every frame is recorded twice", bytes)
	}
}

func TestRecordNamesTheInterface(t *testing.T) {
	if _, err := Record("no-such-link", netip.MustParseAddr("127.0.0.1")); err == nil || !strings.Contains(err.Error(), "no-such-link") {
		t.Errorf("error %v, want one that names the interface", err)
	}
}
