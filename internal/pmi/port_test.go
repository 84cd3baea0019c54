package pmi

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func TestPort(t *testing.T) {
	p, err := OpenPort()
	if err != nil {
		t.Fatal(err)
	}
	v, err := ParseJoinToken(p.String())
	if err != nil {
		t.Fatal(err)
	}
	meet := JoinToken{strings.Repeat("M", minKey), "", []string{"1.2.3.4:5"}}

	// Strangers have no effect, and a wrong key is refused at once.
	stranger, err := net.Dial("tcp", v.addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	wrong := v
	wrong.Key = strings.Repeat("A", len(v.Key))
	if _, _, err := wrong.Call(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "wrong key") {
		t.Errorf("a wrong key: %v", err)
	}
	// A caller that gives up is passed over.
	brief, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	if _, _, err := v.Call(brief, 7); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller that gives up: %v", err)
	}
	cancel()
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		if size, err := p.Accept(t.Context(), 2, meet); size != 3 || err != nil {
			t.Errorf("Accept: %d, %v", size, err)
		}
	}()
	size, got, err := v.Call(t.Context(), 3)
	if size != 2 || err != nil || got.String() != meet.String() {
		t.Errorf("Call: %d, %v, %v", size, got, err)
	}
	<-accepted
	// Closing the port ends calls that wait.
	time.AfterFunc(200*time.Millisecond, p.Close)
	if _, _, err := v.Call(t.Context(), 3); err == nil {
		t.Error("a call at a port that is closed meanwhile must fail")
	}
	if _, _, err := v.Call(t.Context(), 3); !errors.Is(err, ErrPortClosed) {
		t.Errorf("a call at a closed port: %v", err)
	}
}
