//go:build !muster_portable

package iwarp

import (
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestPeersConnectDuringFlood: foreign clients keep connecting to a listener and send
// nothing. Peers with the key must not wait until those time out.
func TestPeersConnectDuringFlood(t *testing.T) {
	a, b := newEnd(t, Config{Key: []byte("k")}), newEnd(t, Config{Key: []byte("k")})
	stop := make(chan struct{})
	var flood sync.WaitGroup
	defer flood.Wait()
	defer close(stop)
	busy := make(chan struct{})
	for _, e := range []*end{a, b} { // whichever of them listens
		at, _, _ := strings.Cut(string(e.qp.Addr()), "/")
		flood.Go(func() {
			var held []net.Conn
			defer func() {
				for _, c := range held {
					_ = c.Close() // nothing was written
				}
			}()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond / 2):
				}
				c, err := net.DialTimeout("tcp", at, time.Second)
				if err != nil {
					continue
				}
				if held = append(held, c); n == 2*mostCallers {
					busy <- struct{}{}
				}
				if len(held) > 4*mostCallers {
					_ = held[0].Close() // likewise
					held = held[1:]
				}
			}
		})
	}
	for range 2 {
		<-busy
	}
	for round := range 5 {
		// The flood takes a core, so that a busy machine may delay the peers once. If they
		// waited for the clients, they would do so each time.
		var all []time.Duration
		for range 3 {
			_, one := a.pair()
			_, other := b.pair()
			begin := time.Now()
			if err := errors.Join(join(one, other, 10*time.Second)); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			all = append(all, time.Since(begin))
			if all[len(all)-1] <= handshakeTimeout/5 {
				break
			}
		}
		if slices.Min(all) > handshakeTimeout/5 {
			t.Errorf("round %d: peers need %v to connect while foreign clients flood the listener", round, all)
		}
	}
}
