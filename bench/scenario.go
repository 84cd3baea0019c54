package bench

// One transfer in a timing scenario (T1 4.4.1). The order of arrival is fixed: the rank
// that comes first makes its non-blocking call and then sends a short message; the other
// receives that before it makes its own call. Rank 0 is the tested side: it computes
// between its call and Wait, and rank 1 stays in the library.
//
// Sends are synchronous, so that the transfer ends at both sides together and its whole
// time is measured (P2 6).

import (
	"time"

	"github.com/muster-mpi/muster/mpi"
)

const (
	dataTag   = 11
	goTag     = 12
	awakeTag  = 13
	orderTag  = 14
	reportTag = 15
)

type scenario struct {
	send        bool // the tested side sends, or else receives
	senderFirst bool
}

// scenarios lists those of the receive side first.
func scenarios() []scenario {
	return []scenario{{false, false}, {false, true}, {true, false}, {true, true}}
}

// side names the tested side.
func (s scenario) side() string {
	if s.send {
		return "send"
	}
	return "recv"
}

func (s scenario) String() string {
	if s.senderFirst {
		return s.side() + "/sender-first"
	}
	return s.side() + "/receiver-first"
}

// transfer is one end of a transfer.
type transfer struct {
	c     *mpi.Comm
	peer  int
	sends bool
	early bool // this rank makes its call first
	buf   []byte
	short [1]byte
	// bare transfers the data instead, for the bounds, and reader receives it at rank 0.
	bare   *bareEnd
	reader *bareReader
	// stamped requests the time at which the non-blocking call returned.
	stamped  bool
	returned time.Time
}

func newTransfer(c *mpi.Comm, s scenario, size int) *transfer {
	tested := c.Rank() == 0
	t := &transfer{c: c, peer: 1 - c.Rank(), sends: s.send == tested, buf: make([]byte, size)}
	t.early = s.senderFirst == t.sends
	fill(t.buf, byte(1+c.Rank()))
	return t
}

// awake makes sure that both ranks poll: a rank that has waited for long may sleep, and
// waking it is not part of a transfer.
func (t *transfer) awake() error {
	for range 2 {
		if t.c.Rank() == 0 {
			if err := mpi.Send(t.c, t.short[:], t.peer, awakeTag); err != nil {
				return err
			}
		}
		if _, err := mpi.Recv(t.c, t.short[:], t.peer, awakeTag); err != nil {
			return err
		}
		if t.c.Rank() == 1 {
			if err := mpi.Send(t.c, t.short[:], t.peer, awakeTag); err != nil {
				return err
			}
		}
	}
	return nil
}

// run makes one transfer with a computation after the call, and returns its time at this
// rank in µs.
func (t *transfer) run(w *work, iterations int) (float64, error) {
	if t.bare != nil {
		return t.runBare(w, iterations)
	}
	start, req, err := t.begin()
	if err != nil {
		return 0, err
	}
	if iterations > 0 {
		w.run(iterations)
	}
	_, err = req.Wait()
	return micros(time.Since(start)), err
}

// begin waits until this rank is to call, and makes the call.
func (t *transfer) begin() (start time.Time, req mpi.Request, err error) {
	if !t.early {
		if _, err := mpi.Recv(t.c, t.short[:], t.peer, goTag); err != nil {
			return start, req, err
		}
	}
	start = time.Now()
	if t.sends {
		req = mpi.Issend(t.c, t.buf, t.peer, dataTag)
	} else {
		req = mpi.Irecv(t.c, t.buf, t.peer, dataTag)
	}
	if t.stamped {
		t.returned = time.Now()
	}
	if t.early {
		err = mpi.Send(t.c, t.short[:], t.peer, goTag)
	}
	return start, req, err
}

// order makes rank 1 take part in n transfers; 0 ends it.
func (t *transfer) order(n int) error { return mpi.Send(t.c, []int64{int64(n)}, 1, orderTag) }

// serve is the part of rank 1: it takes part until an order of 0.
func (t *transfer) serve(once func() error) error {
	n := []int64{0}
	for {
		if _, err := mpi.Recv(t.c, n, 0, orderTag); err != nil || n[0] == 0 {
			return err
		}
		for range n[0] {
			if err := once(); err != nil {
				return err
			}
		}
	}
}
