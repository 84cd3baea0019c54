package mpi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/trace"
	"github.com/muster-mpi/muster/mpi"
)

// talk exchanges messages in all ways: blocking, non-blocking, persistent, with wildcards,
// matched probes and values, on several communicators.
func talk(c *mpi.Comm) error {
	right, left := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	half, err := c.Split(c.Rank()%2, -c.Rank())
	if err != nil {
		return err
	}
	send := mpi.SendInit(c, make([]byte, 10), right, 3)
	for i := range 20 {
		if _, err := mpi.Sendrecv(c, make([]byte, i), right, 1, make([]byte, 20), mpi.AnySource, mpi.AnyTag); err != nil {
			return err
		}
		if err := c.Barrier(); err != nil { // else the wildcard would match what follows
			return err
		}
		rs := []mpi.Request{mpi.Irecv(c, make([]byte, 10), left, 3), mpi.Irecv(c, make([]byte, 1<<17), left, mpi.AnyTag), send.Start(), mpi.Isend(c, make([]byte, 1<<17), right, 4)}
		if err := mpi.WaitAll(rs...); err != nil {
			return err
		}
		if err := mpi.SendValue(c, "hello", right, 5); err != nil {
			return err
		}
		if _, _, err := mpi.RecvValue[string](c, left, 5); err != nil {
			return err
		}
		if err := mpi.Bsend(c, make([]byte, i), right, 6); err != nil {
			return err
		}
		m, _, err := c.Mprobe(left, 6)
		if err != nil {
			return err
		}
		if _, err := mpi.Mrecv(m, make([]byte, 20)); err != nil {
			return err
		}
		if _, err := mpi.SendrecvReplace(half, make([]byte, 1), (half.Rank()+1)%half.Size(), 1, mpi.AnySource, 1); err != nil {
			return err
		}
		if err := mpi.Allreduce(half, nil, []int{1}, mpi.Sum); err != nil {
			return err
		}
	}
	return nil
}

// TestTraceMatchesAllMessages traces 16 ranks and matches every message, with its length.
func TestTraceMatchesAllMessages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	const ranks, each = 16, 20 * 6 // messages of a rank
	runLocal(t, ranks, &mpi.Config{Trace: file}, talk)
	tr := readTrace(t, file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := trace.Check(text); err != nil || c.Flows != ranks*each || c.Open != 0 || c.Backward != 0 {
		t.Errorf("want %d flows with both ends, forward in time, in the Trace Event Format: %+v, %v", ranks*each, c, err)
	}
	m := tr.Match()
	if len(m.Messages) != ranks*each || m.Unmatched != 0 {
		t.Errorf("%d messages match, and %d ends do not; want %d and none", len(m.Messages), m.Unmatched, ranks*each)
	}
	for _, g := range m.Messages {
		s, r := &tr.Ranks[g.Send.Rank].Events[g.Send.Event], &tr.Ranks[g.Recv.Rank].Events[g.Recv.Event]
		if s.Bytes != r.FromBytes || s.Begin > r.End && !r.Starts {
			t.Errorf("a message of %d bytes sent at %d matches one of %d bytes received until %d", s.Bytes, s.Begin, r.FromBytes, r.End)
		}
	}
	if want := 20 + 2*20; len(m.Collectives) != want {
		t.Errorf("%d collective calls match, want %d", len(m.Collectives), want)
	}
	sent := 0
	for _, r := range tr.Ranks {
		for _, p := range r.Phases {
			if p.Row == trace.RowProtocol && p.Sends {
				sent++
				if len(p.Steps) == 0 || p.Bytes != 1<<17 || p.Peer != (r.Rank+1)%ranks {
					t.Errorf("rank %d sends the only long message to the next rank in steps: %+v", r.Rank, p)
				}
			}
		}
	}
	if sent != ranks*20 {
		t.Errorf("%d messages were sent by rendezvous, want %d", sent, ranks*20)
	}
}

// TestTraceLimit records only the first calls, and their messages still match.
func TestTraceLimit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	cfg := &mpi.Config{Trace: file}
	cfg.Advanced.TraceLimit = 50
	runLocal(t, 4, cfg, talk)
	tr := readTrace(t, file)
	for _, r := range tr.Ranks {
		if len(r.Events) != 50 || r.Dropped == 0 {
			t.Errorf("rank %d has %d events and has dropped %d; want 50 and more than none", r.Rank, len(r.Events), r.Dropped)
		}
	}
	if m := tr.Match(); len(m.Messages) == 0 || m.Unmatched > 16 {
		t.Errorf("%d messages match and %d ends do not", len(m.Messages), m.Unmatched)
	}
	if text := tr.Analyze().Report(tr).Text(); !strings.Contains(text, "MUSTER_TRACE_LIMIT") {
		t.Errorf("the summary does not report the limit:\n%s", text)
	}
}

// TestTraceOfTests merges unsuccessful tests in a row.
func TestTraceOfTests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	runLocal(t, 2, &mpi.Config{Trace: file}, func(c *mpi.Comm) error {
		if c.Rank() == 1 {
			if _, err := mpi.Recv(c, make([]byte, 1), 0, 0); err != nil {
				return err
			}
			return mpi.Send(c, make([]byte, 1), 0, 0)
		}
		r := mpi.Irecv(c, make([]byte, 1), 1, 0)
		for range 10 {
			if _, done, err := r.Test(); done || err != nil {
				return fmt.Errorf("a message that was not sent has arrived: %v", err)
			}
		}
		if err := mpi.Send(c, make([]byte, 1), 1, 0); err != nil {
			return err
		}
		for {
			if _, done, err := r.Test(); done {
				return err
			}
		}
	})
	tr := readTrace(t, file)
	if e := tr.Ranks[0].Events; e[1].Name != "Test" || e[1].Calls != 10 || e[2].Name != "Send" || tr.Match().Unmatched != 0 {
		t.Errorf("rank 0 made the calls %+v", e)
	}
}

func readTrace(t *testing.T, file string) *trace.Trace {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestTraceOfLayouts records how long columns of a matrix are packed and unpacked, at the calls that
// have them.
func TestTraceOfLayouts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	runLocal(t, 2, &mpi.Config{Trace: file}, func(c *mpi.Comm) error {
		const n = 256
		matrix := make([]int64, n*n)
		column, err := mpi.Vector[int64](n, 1, n)
		if err != nil {
			return err
		}
		row, err := mpi.Contiguous[int64](n)
		if err != nil {
			return err
		}
		other := 1 - c.Rank()
		for _, l := range []*mpi.Layout[int64]{column, row} {
			received := mpi.IrecvLayout(c, matrix, l, other, 0)
			if err := mpi.SendLayout(c, matrix, l, other, 0); err != nil {
				return err
			}
			if _, err := received.Wait(); err != nil {
				return err
			}
		}
		types := []*mpi.Layout[int64]{column, column}
		return mpi.Alltoallw(c, matrix, types, matrix[1:n*n-n+2], types)
	})
	tr := readTrace(t, file)
	for _, r := range tr.Ranks {
		var packed []string
		for _, e := range r.Events {
			if e.Packing > 0 {
				packed = append(packed, e.Name)
			}
		}
		if got, want := strings.Join(packed, " "), "SendLayout Wait Alltoallw"; got != want {
			t.Errorf("rank %d has packed data in the calls %q, want %q", r.Rank, got, want)
		}
	}
}
