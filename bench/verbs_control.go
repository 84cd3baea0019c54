package bench

// The control connection between the two processes of a verbs benchmark: JSON, one
// object a note. The leader announces a turn; both open the device, swap cards with
// addresses, connect, and swap that they are ready. Then the loops run, and the control
// connection is silent until the leader says stop and the follower says that it has
// stopped. A goroutine reads the notes, because the follower spins meanwhile.

import (
	"cmp"
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
	halted atomic.Bool // the leader has said stop, or is gone
	patience
}

// verbsTurn is what both ends do at a time.
type verbsTurn struct {
	Bench, Device                    string
	Size, Connections, Window, Peers int
	Time                             time.Duration
	Quantile                         float64 // 0: none was asked for
	Key                              []byte
}

// quantile is which of many times counts.
func (t *verbsTurn) quantile() float64 { return cmp.Or(t.Quantile, 0.5) }

// note is what is said over the control connection.
type note struct {
	Kind   string     // turn, card, ready, step, stepped, stop, stopped, end
	Turn   *verbsTurn `json:",omitempty"`
	Card   *card      `json:",omitempty"`
	Report []float64  `json:",omitempty"`
	Err    string     `json:",omitempty"`
	// Without says that Err is the lack of an ability, not a failure; Never that it is
	// lacking whatever the size.
	Without, Never bool `json:",omitempty"`
}

// card is how the other side is reached.
type card struct {
	Addrs []rdma.Addr
	MR    rdma.MR // memory that the other side may reach
}

var (
	errHalted = errors.New("the other process has stopped")
	// errNotOpened says that a device cannot be had at all.
	errNotOpened = fmt.Errorf("%w: it cannot be opened", rdma.ErrUnsupported)
)

// notePatience is how long to wait for a note. It covers the turn of the other side on a
// machine that has much else to do.
const notePatience = 60 * time.Second

// NewVerbsSession is one end of a connection over which the two processes agree. Both
// ends must be given the same devices by open.
func NewVerbsSession(conn net.Conn, at VerbsEndpoint, open OpenVerbs) *VerbsSession {
	s := &VerbsSession{at: at, open: open, conn: conn, out: json.NewEncoder(conn), notes: make(chan note, 4)}
	s.patience.halted = &s.halted
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
			s.halted.Store(true) // whatever loop the follower is in ends
		}
		s.notes <- n
	}
}

func (s *VerbsSession) tell(n note) error {
	if err := s.out.Encode(n); err != nil {
		return fmt.Errorf("tell %q to the other process: %w", n.Kind, err)
	}
	return nil
}

// hear waits for a note of a kind. An error in it is the error here.
func (s *VerbsSession) hear(kind string) (note, error) {
	timer := time.NewTimer(notePatience)
	defer timer.Stop()
	select {
	case n, ok := <-s.notes:
		switch {
		case !ok:
			return n, fmt.Errorf("wait for %q: %w; what it printed tells why", kind, errHalted)
		case n.Kind != kind:
			return n, fmt.Errorf("wait for %q: the other process says %q %s", kind, n.Kind, n.Err)
		case n.Never:
			return n, fmt.Errorf("%w there: %s", errNotOpened, n.Err)
		case n.Without:
			return n, fmt.Errorf("the other process: %w: %s", rdma.ErrUnsupported, n.Err)
		case n.Err != "":
			return n, fmt.Errorf("the other process: %s", n.Err)
		}
		return n, nil
	case <-timer.C:
		return note{}, fmt.Errorf("the other process has not said %q for %v; see whether it still runs", kind, notePatience)
	}
}

// swap tells a note, with an error if there is one, and hears one of the same kind. The
// own error counts first.
func (s *VerbsSession) swap(mine note, err error) (note, error) {
	if err != nil {
		mine.Err, mine.Without, mine.Never = err.Error(), errors.Is(err, rdma.ErrUnsupported), errors.Is(err, errNotOpened)
	}
	if failed := s.tell(mine); failed != nil {
		return note{}, errors.Join(err, failed)
	}
	theirs, heard := s.hear(mine.Kind)
	if err != nil {
		return theirs, err
	}
	return theirs, heard
}

// measure is one turn of the leader.
func (s *VerbsSession) measure(b *Verbs, t *verbsTurn) ([]figure, error) {
	t.Key = make([]byte, 32)
	if _, err := rand.Read(t.Key); err != nil {
		return nil, err
	}
	if err := s.tell(note{Kind: "turn", Turn: t}); err != nil {
		return nil, err
	}
	var got []figure
	err := s.turn(b, t, func(w wire) (err error) {
		got, err = b.lead(s, w, t)
		if told := s.tell(note{Kind: "stop"}); told != nil {
			return errors.Join(err, told)
		}
		_, heard := s.hear("stopped")
		if err != nil {
			if heard != nil && !errors.Is(err, rdma.ErrUnsupported) {
				err = fmt.Errorf("%w; %w", err, heard)
			}
			return err
		}
		return heard
	})
	return got, err
}

// step lets the follower leave its loop and go on to the next part of the turn, with
// some numbers. It hears what the follower has to report.
func (s *VerbsSession) step(numbers ...float64) ([]float64, error) {
	if err := s.tell(note{Kind: "step", Report: numbers}); err != nil {
		return nil, err
	}
	n, err := s.hear("stepped")
	return n.Report, err
}

// stepped is the follower's part of it.
func (s *VerbsSession) stepped(report ...float64) ([]float64, error) {
	n := <-s.notes
	switch n.Kind {
	case "step":
		s.halted.Store(false)
		return n.Report, s.tell(note{Kind: "stepped", Report: report})
	case "stop": // the leader has ended the turn: Follow is to hear it
		s.notes <- n
	}
	return nil, errHalted
}

// end lets the follower go.
func (s *VerbsSession) end() error { return s.tell(note{Kind: "end"}) }

// Follow does the other half until the leader ends it.
func (s *VerbsSession) Follow() error {
	for {
		n, ok := <-s.notes
		if !ok || n.Kind == "end" {
			return nil // a leader that is gone says itself why
		}
		if n.Kind != "turn" || n.Turn == nil {
			return fmt.Errorf("bench: the other process says %q where a turn begins; are both of one version?", n.Kind)
		}
		b, err := FindVerbs(n.Turn.Bench)
		if err != nil {
			return err
		}
		err = s.turn(&b, n.Turn, func(w wire) error {
			err := b.follow(s, w, n.Turn)
			if errors.Is(err, errHalted) {
				err = nil
			}
			if _, heard := s.hear("stop"); heard != nil {
				return heard
			}
			s.halted.Store(false)
			stopped := note{Kind: "stopped"}
			if err != nil {
				stopped.Err, stopped.Without = err.Error(), errors.Is(err, rdma.ErrUnsupported)
			}
			return s.tell(stopped)
		})
		if err != nil && !errors.Is(err, rdma.ErrUnsupported) {
			return fmt.Errorf("bench: %s over %s, %d bytes: %w", b.Name, n.Turn.Device, n.Turn.Size, err)
		}
	}
}

// turn opens the device, connects, runs a loop, and closes.
func (s *VerbsSession) turn(b *Verbs, t *verbsTurn, loop func(wire) error) error {
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
		runtime.GC() // of the turn before, not in this one
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
