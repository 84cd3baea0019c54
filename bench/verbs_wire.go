package bench

// A wire carries the messages of a verbs benchmark: a device, or a bare socket to compare it
// with. Both ends poll, and every wait is bounded.

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The references: bare sockets.
const (
	BareTCP = "tcp"
	BareUDP = "udp"
)

// wire carries messages over one or more connections. The lengths of sent and received
// messages are fixed for the whole trial.
type wire interface {
	card() *card
	connect(*card) error
	// way names the operation for messages of a size; "" if there is none.
	way(size int) string
	lossy() bool
	// send sends a message on connection k. It receives meanwhile.
	send(k int, b []byte) error
	// take consumes received messages, at most most, and polls if there is none. A wire
	// with a socket for each connection polls that of k.
	take(k, most int) (int, error)
	// stamp returns the first byte of the last message.
	stamp() byte
	close() error
}

// remoteWire is a wire that accesses the peer's memory.
type remoteWire interface {
	wire
	device() rdma.Device
	// memory returns the memory that the peer accesses.
	memory() []byte
	// placedBytes returns the number of bytes of received Write-Records.
	placedBytes() int
	// start begins a Write or Read of len(b) bytes.
	start(op rdma.Op, b []byte) error
	// finish consumes completions, at most most.
	finish(most int) (int, error)
}

// openWire opens the device of the trial.
func (s *VerbsSession) openWire(b *Verbs, t *verbsTrial) (wire, error) {
	out, in := b.ask(t.Size), b.answer(t.Size)
	if s.at.Side == 1 {
		out, in = in, out
	}
	if t.Device == BareTCP || t.Device == BareUDP {
		return openBare(s, t, out, in)
	}
	at := s.at
	at.Key = t.Key
	dev, kind, err := s.open(t.Device, at)
	if err != nil {
		if errors.Is(err, rdma.ErrUnsupported) {
			err = fmt.Errorf("%w: %w", errNotOpened, err)
		}
		return nil, err
	}
	w := &deviceWire{dev: dev, kind: kind, attr: dev.Attr(), watch: &s.waiter}
	if err := w.open(t); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return w, nil
}

// inOnePiece reports whether a message of a size can be sent, not only written.
func inOnePiece(w wire, size int) bool {
	way := w.way(size)
	return way != "" && !strings.HasPrefix(way, "write")
}

// buffer returns a message to send, whose pages are allocated.
func buffer(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// waiter bounds polling loops: idle returns an error when a loop must end.
type waiter struct {
	halted *atomic.Bool
	polls  int
	since  time.Time // first poll without progress; zero: the clock was not read yet
}

// silence is the time without progress after which a trial has failed.
const silence = 20 * time.Second

// idle is called after a poll without progress. It reads the clock now and then.
func (p *waiter) idle() error {
	if p.polls++; p.polls&1023 != 0 {
		return nil
	}
	if p.halted.Load() {
		return errHalted
	}
	runtime.Gosched()
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
	} else if now.Sub(p.since) > silence {
		return fmt.Errorf("no progress for %v; the message was lost, or the other process does not run", silence)
	}
	return nil
}

// noteProgress is called after progress.
func (p *waiter) noteProgress() {
	if !p.since.IsZero() {
		p.since = time.Time{}
	}
}

// await receives n messages on connection k.
func (p *waiter) await(w wire, k, n int) error {
	for n > 0 {
		m, err := w.take(k, n)
		if err != nil {
			return err
		}
		if m == 0 {
			if err := p.idle(); err != nil {
				return err
			}
			continue
		}
		p.noteProgress()
		n -= m
	}
	return nil
}
