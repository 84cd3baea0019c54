//go:build ofi && cgo && linux

package ofi

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Failures around a device: no library, other jobs, foreign connections, dead peers.

func TestOpenWithoutLibfabric(t *testing.T) {
	_, err := open(Config{}, "libfabric-that-is-not-there.so.1", 0)
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "libfabric-that-is-not-there") {
		t.Errorf("Open returns %v", err)
	}
	if _, _, err := survey(Config{}, "libfabric-that-is-not-there.so.1"); !errors.Is(err, ErrMissing) {
		t.Errorf("Survey returns %v", err)
	}
	// Another library is not accepted as libfabric.
	if _, err := open(Config{}, "libc.so.6", 0); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "fi_getinfo") {
		t.Errorf("Open of the C library returns %v", err)
	}
}

func TestOpenListsOffersIfNoneMatches(t *testing.T) {
	_, err := Open(Config{Provider: "net", Interface: "ib7"})
	if err == nil || !strings.Contains(err.Error(), "ib7") || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("a missing interface: %v", err)
	}
	if _, err = Open(Config{Provider: "nonsense"}); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a missing provider: %v", err)
	}
}

func TestPeerOfAnotherProvider(t *testing.T) {
	a := mustRank(t, Config{Provider: "net", Job: t.Name()})
	b := mustRank(t, Config{Provider: "tcp;ofi_rxm", Job: t.Name(), Index: 1})
	_, err := a.meet(b)
	if err == nil || !strings.Contains(err.Error(), "net") || !strings.Contains(err.Error(), "tcp;ofi_rxm") {
		t.Errorf("Resolve returns %v; it should name both providers", err)
	}
}

func TestMessagesOfAnotherJobAreDropped(t *testing.T) {
	for _, provider := range []string{"net", "tcp;ofi_rxm", "udp;ofi_rxd"} {
		t.Run(provider, func(t *testing.T) {
			a := mustRank(t, Config{Provider: provider, Job: "one", Index: 0})
			b := mustRank(t, Config{Provider: provider, Job: "one", Index: 1})
			stranger := mustRank(t, Config{Provider: provider, Job: "two", Index: 0})
			toB, err := stranger.meet(b)
			if err != nil {
				t.Fatal(err)
			}
			if err := stranger.send(toB, 0, "from elsewhere"); err != nil {
				t.Fatal(err)
			}
			dropped := b.dev.(*device).dom.countDropped
			for end := time.Now().Add(testTimeout); dropped() == 0; {
				stranger.cq.Poll(stranger.out)
				if n := b.cq.Poll(b.out); n > 0 {
					t.Fatalf("a message of another job is delivered: %+v", b.out[0])
				}
				if time.Now().After(end) {
					t.Fatal("the message of another job is not counted")
				}
			}
			if toB, err = a.meet(b); err != nil {
				t.Fatal(err)
			}
			if err := a.send(toB, 0, "from here"); err != nil {
				t.Fatal(err)
			}
			if c, err := b.next(a, stranger); err != nil || string(c.Data.Bytes()) != "from here" || c.Peer != 0 {
				t.Errorf("a message of the own job arrives as %+v, %v", c, err)
			}
		})
	}
}

// TestKilledPeerIsGone kills a process with and without prior communication.
func TestKilledPeerIsGone(t *testing.T) {
	for _, provider := range []string{"net", "tcp;ofi_rxm"} {
		for _, spoken := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, talked to %v", provider, spoken), func(t *testing.T) {
				r := mustRank(t, Config{Provider: provider, Job: "linger", Index: 0, Peers: 2})
				c := start(t, "linger", "PROVIDER="+provider)
				peer, err := r.dev.Resolve(rdma.Addr(c.line(t)))
				if err != nil {
					t.Fatal(err)
				}
				body := rdma.MemOf(make([]byte, 3000))
				if spoken {
					if err := r.post(rdma.SendWR{ID: 1, Op: rdma.OpSend, Peer: peer, Body: body}); err != nil {
						t.Fatal(err)
					}
					if done, err := r.next(); err != nil || done.Status != rdma.StatusOK {
						t.Fatalf("a send to a live peer completes with %+v, %v", done, err)
					}
				}
				if err := c.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = c.cmd.Wait()
				// The first messages may be lost in a socket that is not read.
				for id, end := uint64(2), time.Now().Add(testTimeout); ; id++ {
					wr := rdma.SendWR{ID: id, Op: rdma.OpSend, Flags: rdma.Inline, Peer: peer, Body: body}
					if err := r.post(wr); err != nil {
						t.Fatal(err)
					}
					if n := r.cq.Poll(r.out); n > 0 {
						if got := r.out[0]; got.Status != rdma.StatusPeerGone || got.Op != rdma.OpSend || got.ID < 2 || got.Peer != peer {
							t.Fatalf("an inline send to a peer that was killed completes with %+v", got)
						}
						return
					}
					if time.Now().After(end) {
						t.Fatalf("no send has failed %v after the peer was killed", testTimeout)
					}
					time.Sleep(time.Millisecond) // the provider needs real time
				}
			})
		}
	}
}

// TestScannedPortCostsNothing treats the listening port like a port scanner, while
// messages continue.
func TestScannedPortCostsNothing(t *testing.T) {
	for _, provider := range []string{"net", "tcp;ofi_rxm"} {
		t.Run(provider, func(t *testing.T) {
			before := listening(t)
			cfg := Config{Provider: provider, Job: t.Name(), Peers: 2}
			a := mustRank(t, cfg)
			cfg.Index = 1
			b := mustRank(t, cfg)
			toB, err := a.meet(b)
			if err != nil {
				t.Fatal(err)
			}
			var ports []string
			for port := range listening(t) {
				if !before[port] {
					ports = append(ports, port)
				}
			}
			if len(ports) < 2 {
				t.Fatalf("two devices listen on %v", ports)
			}
			exchange := func(when string) {
				t.Helper()
				if err := a.send(toB, 0, when); err != nil {
					t.Fatal(err)
				}
				if c, err := b.next(a); err != nil || string(c.Data.Bytes()) != when {
					t.Fatalf("%s, a message arrives as %+v, %v", when, c, err)
				}
			}
			exchange("before the scan")
			var left []net.Conn
			for _, port := range ports {
				for _, garbage := range []string{"", "\x00", "GET / HTTP/1.0\r\n\r\n", strings.Repeat("\xff", 64<<10), strings.Repeat("\x00", 3000)} {
					conn, err := net.Dial("tcp", "127.0.0.1:"+port)
					if err != nil {
						t.Fatalf("the port %s is not open: %v", port, err)
					}
					_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
					_, _ = conn.Write([]byte(garbage))
					exchange("with garbage on the port")
					left = append(left, conn) // half of them stay open
					if len(left)%2 == 0 {
						conn.Close()
					}
					exchange("after a connection without valid data")
				}
			}
			for _, conn := range left {
				conn.Close()
			}
			exchange("after the scan")
			cfg.Index = 2
			c := mustRank(t, cfg)
			if toB, err = c.meet(b); err != nil {
				t.Fatal(err)
			}
			if err := c.send(toB, 0, "new"); err != nil {
				t.Fatal(err)
			}
			if got, err := b.next(a, c); err != nil || string(got.Data.Bytes()) != "new" {
				t.Fatalf("after the scan, a new peer's message arrives as %+v, %v", got, err)
			}
		})
	}
}

// listening returns the TCP ports on which this process listens.
func listening(t *testing.T) map[string]bool {
	t.Helper()
	mine := map[string]bool{}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the list of open ports is not available")
	}
	for _, fd := range fds {
		if link, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(link, "socket:[") {
			mine[strings.Trim(link, "socket:[]")] = true
		}
	}
	ports := map[string]bool{}
	for _, f := range rows("/proc/self/net/tcp") {
		const listens = "0A"
		if len(f) > 9 && f[3] == listens && mine[f[9]] {
			_, hexPort, _ := strings.Cut(f[1], ":")
			if raw, err := hex.DecodeString(hexPort); err == nil && len(raw) == 2 {
				ports[strconv.Itoa(int(raw[0])<<8|int(raw[1]))] = true
			}
		}
	}
	return ports
}
