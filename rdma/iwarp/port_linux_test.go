//go:build !muster_portable

package iwarp

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// TestPortIsFreeAfterClose: with Config.Port, the port can be used again at once. The
// connections that it accepted stay in TIME_WAIT for a minute, in which the next job on
// the host must be able to listen.
func TestPortIsFreeAfterClose(t *testing.T) {
	ports := [2]int{freePort(t), freePort(t)}
	for round := range 3 {
		var ends [2]*end
		for i, port := range ports {
			d, err := Open(Config{Port: port})
			if err != nil {
				t.Fatalf("round %d: %v; connections in TIME_WAIT on that port: %d", round, err, timeWaits(t, port))
			}
			ends[i] = &end{t: t, dev: d}
			ends[i].cq, ends[i].qp = ends[i].pair()
		}
		err := errors.Join(join(ends[0].qp, ends[1].qp, 20*time.Second))
		// The end that closes first keeps the connection in TIME_WAIT, so the one that has
		// accepted it closes first.
		accepted := 0
		if localPort(t, ends[1].qp) == ports[1] {
			accepted = 1
		}
		for _, e := range []*end{ends[accepted], ends[1-accepted]} {
			err = errors.Join(err, e.dev.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(5 * time.Second); timeWaits(t, ports[0])+timeWaits(t, ports[1]) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no connection is in TIME_WAIT, so this test shows nothing")
			}
		}
	}
}

// TestPortInUse: two devices cannot listen on one port, and the error says that it is in
// use, by which the caller recognizes that another port may be free.
func TestPortInUse(t *testing.T) {
	port := freePort(t)
	open(t, Config{Port: port})
	d, err := Open(Config{Port: port})
	if err == nil {
		t.Error("a second device listens on the same port")
		_ = d.Close() // nothing has been sent
	} else if !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a port in use must be reported as such: %v", err)
	}
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	d, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return int(d.(*device).listener.at.Port())
}

func localPort(t *testing.T, qp rdma.QP) int {
	t.Helper()
	q := qp.(*queuePair)
	q.dev.mu.Lock() // the progress thread closes the socket when the peer has closed its own
	defer q.dev.mu.Unlock()
	name, err := unix.Getsockname(int(q.fd))
	if err != nil {
		t.Fatal(err)
	}
	return name.(*unix.SockaddrInet4).Port
}

// timeWaits counts the connections of a local port that are in TIME_WAIT.
func timeWaits(t *testing.T, port int) (n int) {
	t.Helper()
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// sl, local address, remote address, state
		fields := strings.Fields(lines.Text())
		if len(fields) > 3 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) && fields[3] == "06" {
			n++
		}
	}
	return n
}
