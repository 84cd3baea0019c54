package bench

import (
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/iwarp"
	"github.com/muster-mpi/muster/rdma/shm"
	"github.com/muster-mpi/muster/rdma/soft"
)

// testSession returns a session without a peer process.
func testSession(side int, open OpenVerbs) *VerbsSession {
	s := &VerbsSession{at: VerbsEndpoint{Address: "127.0.0.1", Side: side}, open: open}
	s.waiter.halted = &s.halted
	return s
}

// A loop that allocates would also measure the garbage collector.
func TestWiresAllocateNothing(t *testing.T) {
	host := shm.NewHost()
	open := func(name string, at VerbsEndpoint) (rdma.Device, rdma.Transport, error) {
		switch name {
		case "rc":
			d, err := iwarp.Open(iwarp.Config{NoThread: true})
			return d, rdma.RC, err
		case "rd":
			d, err := soft.Open(soft.Config{Bind: netip.MustParseAddrPort("127.0.0.1:0"), JobKey: []byte("of the test")})
			return d, rdma.RD, err
		}
		d, err := shm.Open(shm.Config{Host: host, Index: at.Side})
		return d, rdma.RD, err
	}
	b, err := FindVerbs("verbs-latency")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{BareTCP, BareUDP, "rc", "rd", "shm"} {
		t.Run(name, func(t *testing.T) {
			var ends [2]*VerbsSession
			var wires [2]wire
			for side := range 2 {
				var err error
				ends[side] = testSession(side, open)
				if wires[side], err = ends[side].openWire(&b, &verbsTrial{Bench: b.Name, Device: name, Size: 100, Connections: 1}); err != nil {
					t.Fatal(err)
				}
				defer wires[side].close()
			}
			connected := make(chan error)
			cards := [2]*card{wires[0].card(), wires[1].card()}
			go func() { connected <- wires[1].connect(cards[0]) }()
			if err := errors.Join(wires[0].connect(cards[1]), <-connected); err != nil {
				t.Fatal(err)
			}
			out := buffer(100)
			trip := func() {
				for side := range 2 {
					if err := wires[side].send(0, out); err != nil {
						t.Fatal(err)
					}
					// Poll both ends: nothing else services the sender.
					for n := 0; n == 0; {
						if _, err := wires[side].take(0, 0); err != nil {
							t.Fatal(err)
						}
						var err error
						if n, err = wires[1-side].take(0, 1); err != nil {
							t.Fatal(err)
						}
						if n == 0 {
							if err := ends[side].idle(); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
			}
			for range 100 {
				trip()
			}
			if n := testing.AllocsPerRun(500, trip); n != 0 {
				t.Errorf("a round trip makes %g allocations", n)
			}
		})
	}
}

// leakyWire answers its own messages, but loses every third message and delivers one answer twice.
type leakyWire struct {
	wire
	sent, answers int
	last          byte
}

func (w *leakyWire) way(int) string { return "datagram" }
func (w *leakyWire) stamp() byte    { return w.last }
func (w *leakyWire) send(_ int, b []byte) error {
	if w.sent++; w.sent%3 != 0 {
		w.answers, w.last = 1, b[0]
	}
	if w.sent%5 == 0 {
		w.answers++ // the double comes when the next answer is awaited
	}
	return nil
}
func (w *leakyWire) take(int, int) (int, error) {
	if w.answers == 0 {
		return 0, nil
	}
	w.answers--
	return 1, nil
}

func TestRetransmission(t *testing.T) {
	s, w := testSession(0, nil), &leakyWire{}
	out := buffer(8)
	lost := 0
	for range 6 {
		out[0]++
		again, err := askLossy(s, w, out)
		if err != nil {
			t.Fatal(err)
		}
		lost += again
	}
	if lost != 2 || w.sent != 8 {
		t.Errorf("of 6 messages %d were sent again, %d in all; want 2 and 8", lost, w.sent)
	}
}

func TestWaitTimeout(t *testing.T) {
	var halted atomic.Bool
	p := waiter{halted: &halted}
	p.since = time.Now().Add(-2 * silence)
	err := p.await(&leakyWire{}, 0, 1)
	if err == nil || !strings.Contains(err.Error(), "no progress for") {
		t.Errorf("it ends with %v", err)
	}
	halted.Store(true)
	if err := p.await(&leakyWire{}, 0, 1); !errors.Is(err, errHalted) {
		t.Errorf("when the other has stopped it ends with %v", err)
	}
}

func TestCountArrivedPages(t *testing.T) {
	mem := make([]byte, 3*progressPage+10)
	for k, both := range []bool{true, false, true, true} {
		first, last := page(mem, k)
		if *first = 7; both {
			*last = 7
		}
	}
	if got := arrivalShares(mem, 7); got[0] != 0.75 || got[1] != 0 {
		t.Errorf("three of four pages are counted as %v", got)
	}
	_, last := page(mem, 1)
	*last = 7
	if got := arrivalShares(mem, 7); got[0] != 1 || got[1] != 1 {
		t.Errorf("all of four pages are counted as %v", got)
	}
}
