package iwarp

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Our protocol against Linux's soft-iWARP: make interop-siw runs these tests in a
// virtual machine beside rping. Everywhere else rping's other side is ours too, so
// that the tests themselves are tried every day.

var (
	siwServer = flag.String("siw.server", "", "address:port of a soft-iWARP `server`, rping -s -P; without it our own is taken")
	siwListen = flag.String("siw.listen", "", "`address:port` where rping -c will connect; without it our own client does")
	siwRounds = flag.Int("siw.rounds", 4, "rounds that the client of -siw.listen does")
)

// siwPause is what soft-iWARP needs between its reply and the next frame: it looks
// at the socket again only some time after it has answered.
const siwPause = 500 * time.Millisecond

// connect gives a connection to the server on which everything else is up to the
// test. Our own server takes whatever the client asks for.
func connect(t *testing.T, w wishes) *rpingPeer {
	t.Helper()
	address, pause := *siwServer, siwPause
	if address == "" {
		address, pause = ownServer(t), 0
	}
	conn, err := net.DialTimeout("tcp", address, rpingLimit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	p, err := dialRping(conn, w, pause)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ownServer serves one connection.
func ownServer(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serveOne(l) }()
	t.Cleanup(func() {
		l.Close()
		var fault *net.OpError
		if err := <-ended; err != nil && !errors.As(err, &fault) && !t.Failed() {
			t.Log("our server says: ", err)
		}
	})
	return l.Addr().String()
}

func serveOne(l net.Listener) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	p, err := acceptRping(conn, rpingWishes(false, false, false))
	if err != nil {
		return err
	}
	_, err = p.server()
	return err
}

// Send, RDMA Read answered and RDMA Write taken, with every kind of set-up.
func TestSiwServesOurClient(t *testing.T) {
	for _, c := range []struct {
		crc, p2p bool
		size     int
	}{
		{crc: true, size: 64},
		{crc: false, size: 64},
		{crc: true, p2p: true, size: 64},
		{crc: false, p2p: true, size: 4000},
		{crc: true, p2p: true, size: 65000},
	} {
		t.Run(fmt.Sprintf("crc=%v/p2p=%v/%d", c.crc, c.p2p, c.size), func(t *testing.T) {
			p := connect(t, rpingWishes(c.crc, false, c.p2p))
			if p.terms.crc != c.crc || (p.terms.ready != 0) != c.p2p {
				t.Errorf("agreed on %+v", p.terms)
			}
			if err := p.client(4, c.size); err != nil {
				t.Error(err)
			}
		})
	}
}

// Markers we can try against ourselves only: soft-iWARP refuses them.
func TestMarkersAreTakenOrRefused(t *testing.T) {
	if *siwServer == "" {
		if err := connect(t, rpingWishes(true, true, true)).client(4, 4000); err != nil {
			t.Error(err)
		}
		return
	}
	conn, err := net.DialTimeout("tcp", *siwServer, rpingLimit)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := dialRping(conn, rpingWishes(true, true, false), 0); err == nil {
		t.Error("soft-iWARP takes markers, which it never has")
	}
}

// What the peer's Terminate says is understood, though soft-iWARP has its bits in
// the wrong order.
func TestSiwTerminatesWhatIsForbidden(t *testing.T) {
	p := connect(t, rpingWishes(true, false, true))
	if err := p.send(p.stream.Write(0x0bad0bad, 0, 8), make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	e, err := p.await(ddp.Received)
	if e.Kind != ddp.Terminated || e.Fault != ddp.FaultTag {
		t.Errorf("a Write to a tag that nobody gave: event %+v, error %v; want a Terminate for %v", e, err, ddp.FaultTag)
	}
}

// Our responder against rping -c: RDMA Read asked and RDMA Write sent.
func TestSiwClientIsServed(t *testing.T) {
	address := *siwListen
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, crc := range []bool{false, true} {
		t.Run(fmt.Sprintf("crc=%v", crc), func(t *testing.T) {
			if *siwListen == "" {
				client := make(chan error, 1)
				go func() { client <- ownClient(l.Addr().String(), *siwRounds) }()
				defer func() {
					if err := <-client; err != nil {
						t.Error("our client: ", err)
					}
				}()
			}
			l.(*net.TCPListener).SetDeadline(time.Now().Add(rpingLimit))
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			p, err := acceptRping(conn, rpingWishes(crc, false, false))
			if err != nil {
				t.Fatal(err)
			}
			if rounds, err := p.server(); err != nil || rounds != *siwRounds {
				t.Errorf("%d rounds of %d: %v", rounds, *siwRounds, err)
			}
			if p.terms.crc != crc {
				t.Errorf("CRC %v, our reply said %v and rping asks for none", p.terms.crc, crc)
			}
		})
	}
}

func ownClient(address string, rounds int) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	p, err := dialRping(conn, rpingWishes(false, false, true), 0)
	if err != nil {
		return err
	}
	return p.client(rounds, 4000)
}
