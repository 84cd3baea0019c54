package bench

// Bandwidth: windows of messages one way or both ways, and a flood where messages may be
// lost.

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// leadStream measures MB/s, with 10^6 bytes in a megabyte as in the OSU benchmarks. It sends
// windows and waits for the answer to each. All of the time counts.
func leadStream(s *VerbsSession, w wire, t *verbsTrial) ([]figure, error) {
	way := w.way(t.Size)
	if way == "" {
		return nil, fmt.Errorf("%w: a message of %d bytes is too long, and there is no RDMA Write", rdma.ErrUnsupported, t.Size)
	}
	if w.lossy() {
		return leadFlood(s, w, t)
	}
	window := sendWindow
	if way == "write" {
		window = writeWindow
	}
	out := buffer(t.Size)
	rate, err := windowsFor(t, t.Window*t.Size, func() error { return window(s, w, t, out) })
	return append([]figure{{"bandwidth", "MB/s", rate, way}}, resent(w)...), err
}

// resent returns the share of retransmitted datagrams, if the device counts them.
func resent(w wire) []figure {
	r, ok := w.(remoteWire)
	if !ok {
		return nil
	}
	count := r.device().Caps().Count
	if count == nil {
		return nil
	}
	var sent, again uint64
	count(func(name rdma.Counter, n uint64) {
		switch name {
		case rdma.DatagramsSent:
			sent += n
		case rdma.DatagramsRetransmitted:
			again += n
		}
	})
	if sent == 0 {
		return nil
	}
	return []figure{{"resent", "%", 100 * float64(again) / float64(sent), "datagram"}}
}

// windowsFor runs windows for the time of the trial, after a warm-up.
func windowsFor(t *verbsTrial, bytes int, window func() error) (float64, error) {
	for begin := time.Now(); time.Since(begin) <= t.Time/5; {
		if err := window(); err != nil {
			return 0, err
		}
	}
	windows, begin := 0, time.Now()
	for ; windows < 2 || time.Since(begin) < t.Time; windows++ {
		if err := window(); err != nil {
			return 0, err
		}
	}
	return float64(windows*bytes) / time.Since(begin).Seconds() / 1e6, nil
}

func sendWindow(s *VerbsSession, w wire, t *verbsTrial, out []byte) error {
	for range t.Window {
		if err := w.send(0, out); err != nil {
			return err
		}
	}
	return s.await(w, 0, 1)
}

// writeWindow writes into the peer's memory. The short message is sent when all Writes are
// complete, because nothing else orders it after them.
func writeWindow(s *VerbsSession, w wire, t *verbsTrial, out []byte) error {
	if err := remoteOps(s, w, rdma.OpWrite, out, t.Window, t.Window); err != nil {
		return err
	}
	if err := w.send(0, out[:1]); err != nil {
		return err
	}
	return s.await(w, 0, 1)
}

// followStream answers each window, or counts a flood.
func followStream(s *VerbsSession, w wire, t *verbsTrial) error {
	if w.lossy() {
		return followFlood(s, w, t)
	}
	messages, out := t.Window, buffer(1)
	if w.way(t.Size) == "write" {
		messages = 1
	}
	for {
		if err := s.await(w, 0, messages); err != nil {
			return err
		}
		if err := w.send(0, out); err != nil {
			return err
		}
	}
}

// leadFlood sends as fast as it can for the time of the trial. The rate is the number of
// messages received divided by the time of sending or receiving, whichever is longer.
func leadFlood(s *VerbsSession, w wire, t *verbsTrial) ([]figure, error) {
	out := buffer(t.Size)
	window := func() error {
		for range t.Window {
			if err := w.send(0, out); err != nil {
				return err
			}
		}
		return nil
	}
	if w.way(t.Size) == "write-record" {
		window = func() error { return remoteOps(s, w, rdma.OpWriteRecord, out, t.Window, t.Window) }
	}
	sent := 0
	begin := time.Now()
	for ; time.Since(begin) < t.Time; sent += t.Window {
		if err := window(); err != nil {
			return nil, err
		}
	}
	sending := time.Since(begin).Seconds()
	for end := time.Now().Add(floodEnds); time.Now().Before(end); { // flush what is queued
		if _, err := w.take(0, 1); err != nil {
			return nil, err
		}
	}
	report, err := s.step()
	if err != nil {
		return nil, err
	}
	came, seconds := report[0], max(report[1], sending)
	if came == 0 {
		return nil, fmt.Errorf("none of %d messages arrived: check the network between the processes", sent)
	}
	return []figure{
		{"bandwidth", "MB/s", came / seconds / 1e6, w.way(t.Size)},
		{"lost", "%", 100 * (1 - came/float64(sent*t.Size)), w.way(t.Size)},
	}, nil
}

// floodEnds is how long a flood may take to run dry.
const floodEnds = 20 * time.Millisecond

// followFlood counts bytes and the time between the first and the last. When the leader has
// sent everything, it takes what waits in the socket: a follower that other processes keep
// from running is behind by the whole flood.
func followFlood(s *VerbsSession, w wire, t *verbsTrial) error {
	var came int
	var first, last, quiet time.Time
	for {
		n, err := w.take(0, t.Window)
		if err != nil {
			return err
		}
		if n == 0 {
			if quiet.IsZero() && s.halted.Load() {
				quiet = time.Now()
			}
			if !quiet.IsZero() && time.Since(quiet) > floodEnds {
				break
			}
			continue
		}
		quiet = time.Time{}
		if last = time.Now(); came == 0 {
			first = last
		}
		came += n
	}
	bytes := came * t.Size
	if r, ok := w.(remoteWire); ok && w.way(t.Size) == "write-record" {
		bytes = r.placedBytes() // of some only parts have come
	}
	_, err := s.followStep(float64(bytes), last.Sub(first).Seconds())
	return err
}

func leadBothWays(s *VerbsSession, w wire, t *verbsTrial) ([]figure, error) {
	if !inOnePiece(w, t.Size) || w.lossy() {
		return nil, fmt.Errorf("%w: both ways need reliable messages of %d bytes", rdma.ErrUnsupported, t.Size)
	}
	rate, err := bothWays(s, w, t)
	return []figure{{"bandwidth", "MB/s", rate, w.way(t.Size)}}, err
}

// bothWays sends windows over all connections round-robin while as many messages come.
func bothWays(s *VerbsSession, w wire, t *verbsTrial) (float64, error) {
	out, window := buffer(t.Size), bothWindow(t)
	return windowsFor(t, 2*window*t.Size, func() error { return exchangeWindow(s, w, t, out, window) })
}

// bothWindow is a number of messages that every connection has the same share of.
func bothWindow(t *verbsTrial) int {
	return (t.Window + t.Connections - 1) / t.Connections * t.Connections
}

func exchangeWindow(s *VerbsSession, w wire, t *verbsTrial, out []byte, window int) error {
	each := window / t.Connections
	for i := range window {
		if err := w.send(i%t.Connections, out); err != nil {
			return err
		}
	}
	for k := range t.Connections {
		if err := s.await(w, k, each); err != nil {
			return err
		}
	}
	return nil
}

// followBothWays begins a window when the first message of the leader's has come.
func followBothWays(s *VerbsSession, w wire, t *verbsTrial) error {
	out, window := buffer(t.Size), bothWindow(t)
	each := window / t.Connections
	for {
		if err := s.await(w, 0, 1); err != nil {
			return err
		}
		for i := range window {
			if err := w.send(i%t.Connections, out); err != nil {
				return err
			}
		}
		for k := range t.Connections {
			n := each
			if k == 0 {
				n--
			}
			if err := s.await(w, k, n); err != nil {
				return err
			}
		}
	}
}
