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

// Our protocol against Linux's soft-iWARP: make interop-siw runs these tests in a virtual
// machine beside rping. Everywhere else rping's other side is ours too, so that the tests
// themselves run every day.

var (
	siwServer = flag.String("siw.server", "", "address:port of a soft-iWARP `server`, rping -s -P; without it our own is used")
	siwListen = flag.String("siw.listen", "", "`address:port` where rping -c will connect; without it our own client does")
	siwAnswer = flag.String("siw.answer", "", "address:port of a soft-iWARP `server`, rdma_server; without it our own is used")
	siwAsk    = flag.String("siw.ask", "", "`address:port` where rdma_client will connect; without it our own client does")
	siwRounds = flag.Int("siw.rounds", 4, "rounds that the client of -siw.listen does")
)

// siwPause is the time that soft-iWARP needs between its reply and the next frame: it
// polls the socket again only some time after it has answered.
const siwPause = 500 * time.Millisecond

// connect returns a connection to rping's server; the rest is up to the test. Our own
// server accepts whatever the client requests.
func connect(t *testing.T, w preferences) *rpingPeer {
	t.Helper()
	return connectTo(t, *siwServer, w, func(p *rpingPeer) error {
		_, err := p.server()
		return err
	})
}

// connectTo connects to a soft-iWARP server or, if there is none, to one of ours.
func connectTo(t *testing.T, address string, w preferences, own func(*rpingPeer) error) *rpingPeer {
	t.Helper()
	pause := siwPause
	if address == "" {
		address, pause = ownServer(t, own), 0
	}
	// A server may be about to start, or refuse because it is about to end.
	p, err := dialOnce(t, address, w, pause)
	for limit := time.Now().Add(rpingLimit); err != nil && pause > 0 && time.Now().Before(limit); {
		time.Sleep(pause) // another process
		p, err = dialOnce(t, address, w, pause)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func dialOnce(t *testing.T, address string, w preferences, pause time.Duration) (*rpingPeer, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.Close() })
	return dialRping(conn, w, pause)
}

// ownServer serves one connection.
func ownServer(t *testing.T, own func(*rpingPeer) error) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serveOne(l, own) }()
	t.Cleanup(func() {
		l.Close()
		var fault *net.OpError
		if err := <-ended; err != nil && !errors.As(err, &fault) && !t.Failed() {
			t.Log("our server returns: ", err)
		}
	})
	return l.Addr().String()
}

func serveOne(l net.Listener, own func(*rpingPeer) error) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	p, err := acceptRping(conn, rpingPreferences(false, false, false))
	if err != nil {
		return err
	}
	return own(p)
}

// A Send, a Read that we answer and a Write that we receive, with every kind of setup.
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
			p := connect(t, rpingPreferences(c.crc, false, c.p2p))
			if p.terms.crc != c.crc || (p.terms.ready != 0) != c.p2p {
				t.Errorf("agreed on %+v", p.terms)
			}
			if err := p.client(4, c.size); err != nil {
				t.Error(err)
			}
		})
	}
}

// Markers can be tested only against ourselves: soft-iWARP refuses them.
func TestMarkersAcceptedOrRefused(t *testing.T) {
	if *siwServer == "" {
		if err := connect(t, rpingPreferences(true, true, true)).client(4, 4000); err != nil {
			t.Error(err)
		}
		return
	}
	conn, err := net.DialTimeout("tcp", *siwServer, rpingLimit)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := dialRping(conn, rpingPreferences(true, true, false), 0); err == nil {
		t.Error("soft-iWARP accepts markers, which it never did")
	}
}

// The peer's Terminate is understood, although soft-iWARP has its bits in the wrong order.
func TestSiwTerminatesWhatIsForbidden(t *testing.T) {
	p := connect(t, rpingPreferences(true, false, true))
	if err := p.send(p.stream.Write(0x0bad0bad, 0, 8), make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	e, err := p.await(ddp.Received)
	if e.Kind != ddp.Terminated || e.Fault != ddp.FaultTag {
		t.Errorf("a Write to an invalid tag: event %+v, error %v; want a Terminate for %v", e, err, ddp.FaultTag)
	}
}

// Our responder against rping -c: it issues a Read and a Write.
func TestSiwClientIsServed(t *testing.T) {
	serveBothWays(t, *siwListen, func(p *rpingPeer) error {
		rounds, err := p.server()
		if err == nil && rounds != *siwRounds {
			err = fmt.Errorf("%d rounds of %d", rounds, *siwRounds)
		}
		return err
	}, func(p *rpingPeer) error { return p.client(*siwRounds, 4000) })
}

// One Send each way, as librdmacm's rdma_client and rdma_server do it.
func TestSiwAnswersOurSend(t *testing.T) {
	for _, crc := range []bool{false, true} {
		t.Run(fmt.Sprintf("crc=%v", crc), func(t *testing.T) {
			p := connectTo(t, *siwAnswer, rpingPreferences(crc, false, true), answerOne)
			if err := askOne(p); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSiwSendIsAnswered(t *testing.T) {
	serveBothWays(t, *siwAsk, answerOne, askOne)
}

func askOne(p *rpingPeer) error {
	err := p.sendMessage([rpingOffer]byte{1})
	if err == nil {
		_, err = p.await(ddp.Received)
	}
	return err
}

func answerOne(p *rpingPeer) error {
	_, err := p.await(ddp.Received)
	if err == nil {
		err = p.sendMessage([rpingOffer]byte{2})
	}
	return err
}

// serveBothWays serves two connections, with our reply requesting no CRC and one. The
// other side is soft-iWARP if an address is given, and ours if not.
func serveBothWays(t *testing.T, address string, serve, own func(*rpingPeer) error) {
	t.Helper()
	alone := address == ""
	if alone {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, crc := range []bool{false, true} {
		t.Run(fmt.Sprintf("crc=%v", crc), func(t *testing.T) {
			if alone {
				client := make(chan error, 1)
				go func() { client <- ownClient(l.Addr().String(), own) }()
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
			p, err := acceptRping(conn, rpingPreferences(crc, false, false))
			if err != nil {
				t.Fatal(err)
			}
			if err := serve(p); err != nil {
				t.Error(err)
			}
			if p.terms.crc != crc {
				t.Errorf("CRC %v, our reply requested %v and the client requests none", p.terms.crc, crc)
			}
		})
	}
}

func ownClient(address string, own func(*rpingPeer) error) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	p, err := dialRping(conn, rpingPreferences(false, false, true), 0)
	if err != nil {
		return err
	}
	return own(p)
}
