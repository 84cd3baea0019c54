package bench

// The control connection between the two processes of a verbs benchmark carries notes,
// one JSON object each. The leader announces a trial. Both open the device, exchange cards
// with addresses, connect, and exchange "ready". Then the loops run, and the control
// connection is idle until the leader sends "stop" and the follower answers "stopped". A
// goroutine reads the notes, because the follower's loop spins.

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// VerbsSession is one end of a verbs benchmark.
type VerbsSession struct {
	at     VerbsEndpoint
	open   OpenVerbs
	conn   net.Conn
	out    *json.Encoder
	notes  chan note
	halted atomic.Bool // the leader has sent stop or has exited
	waiter
}

// verbsTrial has the parameters of a trial.
type verbsTrial struct {
	Bench, Device                    string
	Size, Connections, Window, Peers int
	Time                             time.Duration
	Key                              []byte
}

// note is a message of the control connection.
type note struct {
	Kind   string      // turn, card, ready, step, stepped, stop, stopped, end
	Trial  *verbsTrial `json:"Turn,omitempty"`
	Card   *card       `json:",omitempty"`
	Report []float64   `json:",omitempty"`
	Err    string      `json:",omitempty"`
	// Without marks Err as an unsupported operation, not a failure; Never marks it as
	// unsupported for every size.
	Without, Never bool `json:",omitempty"`
}

// card is the address of a side.
type card struct {
	Addrs []rdma.Addr
	MR    rdma.MR // memory that the peer may access
}

var (
	errHalted = errors.New("the other process has stopped")
	// errNotOpened: the device is not available at all.
	errNotOpened = fmt.Errorf("%w: it cannot be opened", rdma.ErrUnsupported)
)

// noteTimeout bounds the wait for a note. It covers the trial of the other side on a busy
// machine.
const noteTimeout = 60 * time.Second

// NewVerbsSession returns one end of a control connection. open must provide the same
// devices at both ends.
func NewVerbsSession(conn net.Conn, at VerbsEndpoint, open OpenVerbs) *VerbsSession {
	s := &VerbsSession{at: at, open: open, conn: conn, out: json.NewEncoder(conn), notes: make(chan note, 4)}
	s.waiter.halted = &s.halted
	go s.read()
	return s
}

func (s *VerbsSession) read() {
	for in := json.NewDecoder(s.conn); ; {
		var n note
		if err := in.Decode(&n); err != nil {
			s.halted.Store(true)
			close(s.notes)
			return
		}
		if n.Kind == "stop" || n.Kind == "step" {
			s.halted.Store(true) // ends the loop of the follower
		}
		s.notes <- n
	}
}

func (s *VerbsSession) notify(n note) error {
	if err := s.out.Encode(n); err != nil {
		return fmt.Errorf("send %q to the other process: %w", n.Kind, err)
	}
	return nil
}

// receive waits for a note of a kind. It returns the error that the note carries.
func (s *VerbsSession) receive(kind string) (note, error) {
	timer := time.NewTimer(noteTimeout)
	defer timer.Stop()
	select {
	case n, ok := <-s.notes:
		switch {
		case !ok:
			return n, fmt.Errorf("wait for %q: %w; see its output for the reason", kind, errHalted)
		case n.Kind != kind:
			return n, fmt.Errorf("wait for %q: the other process sent %q %s", kind, n.Kind, n.Err)
		case n.Never:
			return n, fmt.Errorf("%w there: %s", errNotOpened, n.Err)
		case n.Without:
			return n, fmt.Errorf("the other process: %w: %s", rdma.ErrUnsupported, n.Err)
		case n.Err != "":
			return n, fmt.Errorf("the other process: %s", n.Err)
		}
		return n, nil
	case <-timer.C:
		return note{}, fmt.Errorf("the other process has not sent %q for %v; check that it still runs", kind, noteTimeout)
	}
}

// swap sends a note, with an error if there is one, and receives one of the same kind. The
// local error takes precedence.
func (s *VerbsSession) swap(mine note, err error) (note, error) {
	if err != nil {
		mine.Err, mine.Without, mine.Never = err.Error(), errors.Is(err, rdma.ErrUnsupported), errors.Is(err, errNotOpened)
	}
	if failed := s.notify(mine); failed != nil {
		return note{}, errors.Join(err, failed)
	}
	theirs, received := s.receive(mine.Kind)
	if err != nil {
		return theirs, err
	}
	return theirs, received
}

// measure is the leader's part of a trial.
func (s *VerbsSession) measure(b *Verbs, t *verbsTrial) ([]figure, error) {
	t.Key = make([]byte, 32)
	if _, err := rand.Read(t.Key); err != nil {
		return nil, err
	}
	if err := s.notify(note{Kind: "turn", Trial: t}); err != nil {
		return nil, err
	}
	var got []figure
	err := s.trial(b, t, func(w wire) (err error) {
		got, err = b.lead(s, w, t)
		if failed := s.notify(note{Kind: "stop"}); failed != nil {
			return errors.Join(err, failed)
		}
		_, received := s.receive("stopped")
		if err != nil {
			if received != nil && !errors.Is(err, rdma.ErrUnsupported) {
				err = fmt.Errorf("%w; %w", err, received)
			}
			return err
		}
		return received
	})
	return got, err
}

// step makes the follower leave its loop and go on to the next part of the trial, with
// some numbers. It returns the report of the follower.
func (s *VerbsSession) step(numbers ...float64) ([]float64, error) {
	if err := s.notify(note{Kind: "step", Report: numbers}); err != nil {
		return nil, err
	}
	n, err := s.receive("stepped")
	return n.Report, err
}

// followStep is the follower's part of step.
func (s *VerbsSession) followStep(report ...float64) ([]float64, error) {
	n := <-s.notes
	switch n.Kind {
	case "step":
		s.halted.Store(false)
		return n.Report, s.notify(note{Kind: "stepped", Report: report})
	case "stop": // the leader has ended the trial: Follow handles it
		s.notes <- n
	}
	return nil, errHalted
}

// end ends the follower.
func (s *VerbsSession) end() error { return s.notify(note{Kind: "end"}) }

// Follow does the follower's half of all trials until the leader ends it.
func (s *VerbsSession) Follow() error {
	for {
		n, ok := <-s.notes
		if !ok || n.Kind == "end" {
			return nil // a leader that failed reports the reason itself
		}
		if n.Kind != "turn" || n.Trial == nil {
			return fmt.Errorf("bench: the other process sent %q at the beginning of a trial; are both of the same version?", n.Kind)
		}
		b, err := FindVerbs(n.Trial.Bench)
		if err != nil {
			return err
		}
		err = s.trial(&b, n.Trial, func(w wire) error {
			err := b.follow(s, w, n.Trial)
			if errors.Is(err, errHalted) {
				err = nil
			}
			if _, received := s.receive("stop"); received != nil {
				return received
			}
			s.halted.Store(false)
			stopped := note{Kind: "stopped"}
			if err != nil {
				stopped.Err, stopped.Without = err.Error(), errors.Is(err, rdma.ErrUnsupported)
			}
			return s.notify(stopped)
		})
		if err != nil && !errors.Is(err, rdma.ErrUnsupported) {
			return fmt.Errorf("bench: %s over %s, %d bytes: %w", b.Name, n.Trial.Device, n.Trial.Size, err)
		}
	}
}

// trial opens the device, connects, runs a loop, and closes.
func (s *VerbsSession) trial(b *Verbs, t *verbsTrial, loop func(wire) error) error {
	w, err := s.openWire(b, t)
	theirs, err := s.swap(note{Kind: "card", Card: cardOf(w)}, err)
	if err == nil {
		if theirs.Card == nil {
			err = errors.New("the other process has sent no address")
		} else {
			err = w.connect(theirs.Card)
		}
		_, err = s.swap(note{Kind: "ready"}, err)
	}
	if err == nil {
		runtime.GC() // collect the garbage of the previous trial now
		err = loop(w)
	}
	if w != nil {
		err = errors.Join(err, w.close())
	}
	return err
}

func cardOf(w wire) *card {
	if w == nil {
		return nil
	}
	return w.card()
}
