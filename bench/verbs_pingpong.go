package bench

// The round trip of a message, on one connection or on many at once.

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// leadPingPong measures half round trips.
func leadPingPong(s *VerbsSession, w wire, t *verbsTrial) ([]figure, error) {
	if !inOnePiece(w, t.Size) {
		return nil, fmt.Errorf("%w: a message of %d bytes is too long", rdma.ErrUnsupported, t.Size)
	}
	if w.lossy() {
		return leadLossyPingPong(s, w, t)
	}
	us, err := pingPongs(s, w, t)
	return []figure{{"latency", "us", us, w.way(t.Size)}}, err
}

// pingPongs repeatedly sends one message on every connection, one after the other, and
// receives one from each. The result is half of the time divided by the number of
// connections, in µs.
func pingPongs(s *VerbsSession, w wire, t *verbsTrial) (float64, error) {
	out := buffer(t.Size)
	return inBatches(t.Time, func(rounds int) error {
		for range rounds {
			for k := range t.Connections {
				if err := w.send(k, out); err != nil {
					return err
				}
			}
			for k := range t.Connections {
				if err := s.await(w, k, 1); err != nil {
					return err
				}
			}
		}
		return nil
	}, 2*t.Connections)
}

// inBatches runs rounds for a while, after a warm-up, and returns the median time of a batch
// per operation in µs; a round has that many operations. A batch lasts about a thousandth of
// the time, so that batches disturbed by other load do not count.
func inBatches(d time.Duration, run func(rounds int) error, operations int) (float64, error) {
	rounds, least := 1, d
	for begin, last := time.Now(), time.Duration(0); ; {
		if err := run(rounds); err != nil {
			return 0, err
		}
		now := time.Since(begin)
		if least = min(least, (now-last)/time.Duration(rounds)); time.Duration(rounds)*least < d/1000 {
			rounds *= 2
		}
		if last = now; now > d/5 {
			break
		}
	}
	var times []float64
	for begin := time.Now(); time.Since(begin) < d || len(times) < 3; {
		start := time.Now()
		if err := run(rounds); err != nil {
			return 0, err
		}
		times = append(times, micros(time.Since(start))/float64(rounds*operations))
	}
	return Median(times), nil
}

// followPingPong answers, in the order of the connections.
func followPingPong(s *VerbsSession, w wire, t *verbsTrial) error {
	out := buffer(t.Size)
	for {
		for k := range t.Connections {
			if err := s.await(w, k, 1); err != nil {
				return err
			}
			if w.lossy() {
				out[0] = w.stamp()
			}
			if err := w.send(k, out); err != nil {
				return err
			}
		}
	}
}

// resendAfter is the time after which a datagram or its answer counts as lost.
const resendAfter = 100 * time.Millisecond

// leadLossyPingPong sends a message again if no answer arrives. The first byte identifies
// the message that an answer belongs to.
func leadLossyPingPong(s *VerbsSession, w wire, t *verbsTrial) ([]figure, error) {
	if t.Connections > 1 {
		return nil, fmt.Errorf("%w: many connections need a reliable transport", rdma.ErrUnsupported)
	}
	out := buffer(t.Size)
	var sent, lost int
	us, err := inBatches(t.Time, func(rounds int) error {
		for range rounds {
			out[0]++
			sent++
			again, err := askLossy(s, w, out)
			if err != nil {
				return err
			}
			lost += again
		}
		return nil
	}, 2)
	got := []figure{{"latency", "us", us, w.way(t.Size)}}
	if lost > 0 {
		got = append(got, figure{"lost", "%", 100 * float64(lost) / float64(sent+lost), w.way(t.Size)})
	}
	return got, err
}

// askLossy sends a message until its answer arrives, and returns the number of
// retransmissions.
func askLossy(s *VerbsSession, w wire, out []byte) (again int, err error) {
	for ; ; again++ {
		if err := w.send(0, out); err != nil {
			return again, err
		}
		var since time.Time // begin of a long wait
		for spins := 1; ; spins++ {
			n, err := w.take(0, 1)
			if err != nil {
				return again, err
			}
			if n == 1 && w.stamp() == out[0] {
				s.noteProgress()
				return again, nil
			}
			if err := s.idle(); err != nil {
				return again, err
			}
			if spins&1023 != 0 {
				continue
			}
			if since.IsZero() {
				since = time.Now()
			} else if time.Since(since) > resendAfter {
				break
			}
		}
	}
}

// leadConnections: T1 3.4.1 and T2 5.4, first the latency, then the throughput.
func leadConnections(s *VerbsSession, w wire, t *verbsTrial) ([]figure, error) {
	if !inOnePiece(w, t.Size) || w.lossy() {
		return nil, fmt.Errorf("%w: many connections need a reliable transport", rdma.ErrUnsupported)
	}
	us, err := pingPongs(s, w, t)
	if err != nil {
		return nil, err
	}
	if _, err := s.step(); err != nil {
		return nil, err
	}
	rate, err := bothWays(s, w, t)
	return []figure{{"latency", "us", us, w.way(t.Size)}, {"throughput", "MB/s", rate, w.way(t.Size)}}, err
}

// followConnections answers until the next step, then sends windows itself.
func followConnections(s *VerbsSession, w wire, t *verbsTrial) error {
	if err := followPingPong(s, w, t); !errors.Is(err, errHalted) {
		return err
	}
	if _, err := s.followStep(); err != nil {
		return err
	}
	return followBothWays(s, w, t)
}
