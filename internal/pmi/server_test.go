package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// serveJob returns the server and the clients of a job, all in this process.
func serveJob(t *testing.T, cfg ServerConfig, board *Board) (*Server, []Client) {
	t.Helper()
	s := NewServer(cfg)
	clients := make([]Client, cfg.Size)
	for rank := range clients {
		ours, theirs := net.Pipe()
		go s.Serve(rank, theirs)
		c, err := joinWire(t.Context(), ours, rank, cfg.Size, board, nil, Terms{})
		if err != nil {
			t.Fatal(err)
		}
		clients[rank] = c
		t.Cleanup(func() { ours.Close() })
	}
	return s, clients
}

func TestServedExchange(t *testing.T) {
	for _, n := range []int{1, 2, 8} {
		s, clients := serveJob(t, ServerConfig{Size: n}, nil)
		for rank, c := range clients {
			if c.JobID() != s.JobID() || c.LocalRank() != rank || c.LocalSize() != n || c.Node(rank) != 0 {
				t.Errorf("rank %d of %d has a wrong node: %d of %d, job %s", rank, n, c.LocalRank(), c.LocalSize(), c.JobID())
			}
		}
		exchange(t, clients)
		for rank := range n {
			if s.Phase(rank) != PhaseFinalized {
				t.Errorf("rank %d has closed and must count as finalized, not %v", rank, s.Phase(rank))
			}
		}
	}
}

func TestServedTwoNodes(t *testing.T) {
	_, clients := serveJob(t, ServerConfig{Size: 5, Mapping: "(vector,(0,2,1))"}, nil)
	c := clients[4]
	if c.LocalRank() != 2 || c.LocalSize() != 3 || c.Node(3) != 1 {
		t.Errorf("rank 4 of 5 on two alternating nodes: is %d of %d, rank 3 on node %d", c.LocalRank(), c.LocalSize(), c.Node(3))
	}
}

func TestServedCallsAfterClose(t *testing.T) {
	_, clients := serveJob(t, ServerConfig{Size: 1}, nil)
	c := clients[0]
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close, also a second one, must succeed: %v", err)
		}
	}
	if err := c.Put("k", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Put after Close must return ErrClosed: %v", err)
	}
}

func TestServedSecondPut(t *testing.T) {
	_, clients := serveJob(t, ServerConfig{Size: 1}, nil)
	c := clients[0]
	if err := c.Put("k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	if err := c.Put("k", []byte("w")); err == nil || !strings.Contains(err.Error(), `"k"`) {
		t.Errorf("a second Put must be rejected with the key's name: %v", err)
	}
}

func TestServedTimeoutNamesMissingRanks(t *testing.T) {
	board := NewBoard(3)
	_, clients := serveJob(t, ServerConfig{Size: 3}, board)
	go clients[1].Fence(t.Context())
	waitFor(t, time.Millisecond, "rank 1 in the fence", func() bool { return board.Row(1).State == RowWaiting })
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // the server must have answered once, on a busy machine too
	defer cancel()
	if _, err := clients[0].Get(ctx, 2, "addr"); err == nil || !strings.Contains(err.Error(), `rank 2 has not put "addr"`) {
		t.Errorf("a late Get must name rank and key: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	err := clients[0].Fence(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "rank 2") || strings.Contains(err.Error(), "rank 1") {
		t.Errorf("a late Fence must name rank 2 alone: %v", err)
	}
	if again := clients[0].Put("k", nil); !errors.Is(again, context.DeadlineExceeded) {
		t.Errorf("after a Fence that timed out the client must reject calls with the reason: %v", again)
	}
}

func TestServedFenceEndsOnFailure(t *testing.T) {
	board := NewBoard(2)
	_, clients := serveJob(t, ServerConfig{Size: 2}, board)
	time.AfterFunc(10*time.Millisecond, func() { board.MarkDead(Death{1, "h", "killed by SIGKILL"}) })
	start := time.Now()
	err := clients[0].Fence(t.Context())
	var dead *DeadError
	if !errors.As(err, &dead) || dead.Rank != 1 {
		t.Errorf("the Fence must end with the death of rank 1: %v", err)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("it took %v to notice a failure", d)
	}
}

func TestServerEvents(t *testing.T) {
	var mu sync.Mutex
	var got []Event
	_, clients := serveJob(t, ServerConfig{Size: 2, Event: func(e Event) {
		mu.Lock()
		got = append(got, e)
		mu.Unlock()
	}}, nil)
	clients[0].Abort(9, "the mesh has a hole\nin cell 3")
	want := Event{Rank: 0, Phase: PhaseAborted, Code: 9, Why: "the mesh has a hole\nin cell 3"}
	waitFor(t, time.Millisecond, "two joins and the abort with code and reason", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) == 3 && got[2] == want
	})
}

// The server gives the same answers as Hydra, because C clients compare the text.
func TestServerTranscript(t *testing.T) {
	s := NewServer(ServerConfig{Size: 1, JobID: "job"})
	ours, theirs := net.Pipe()
	defer ours.Close()
	go s.Serve(0, theirs)
	in := bufio.NewReader(ours)
	for _, step := range []struct{ ask, want string }{
		{"cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"},
		{"cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024"},
		{"cmd=get_appnum", "cmd=appnum appnum=0"},
		{"cmd=get_universe_size", "cmd=universe_size size=1"},
		{"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=job"},
		{"cmd=get kvsname=job key=PMI_process_mapping", "cmd=get_result rc=0 msg=success value=(vector,(0,1,1))"},
		{"cmd=get kvsname=job key=nothing", "cmd=get_result rc=-1 msg=no_such_key value=unknown"},
		{"cmd=put kvsname=job key=a value=0a1b", "cmd=put_result rc=0 msg=success"},
		{"cmd=put kvsname=job key=a value=0", "cmd=put_result rc=-1 msg=duplicate_key"},
		{"cmd=put kvsname=job key=b value=" + strings.Repeat("x", 1025), "cmd=put_result rc=-1 msg=value_too_long"},
		{"cmd=put kvsname=job key=" + strings.Repeat("x", 65) + " value=0", "cmd=put_result rc=-1 msg=bad_key"},
		{"cmd=barrier_in", "cmd=barrier_out rc=0"},
		{"mcmd=spawn\nnprocs=1\nexecname=x\nendcmd", "cmd=spawn_result rc=-1 msg=not_supported"},
		{"cmd=publish_name service=s port=p", "cmd=publish_result info=not_supported rc=-1 msg=not_supported"},
		{"cmd=dance", "cmd=dance_result rc=-1 msg=unknown_command"},
		{"cmd=finalize", "cmd=finalize_ack rc=0"},
	} {
		fmt.Fprintln(ours, step.ask)
		ours.SetReadDeadline(time.Now().Add(5 * time.Second))
		got, err := in.ReadString('\n')
		if got != step.want+"\n" {
			t.Fatalf("%.60s must be answered %q; got %q, %v", step.ask, step.want, got, err)
		}
	}
}

// In a job of several programs each rank learns the number of its own.
func TestServerAppNumber(t *testing.T) {
	s := NewServer(ServerConfig{Size: 5, JobID: "job", App: func(rank int) int { return rank / 2 }})
	ours, theirs := net.Pipe()
	defer ours.Close()
	go s.Serve(4, theirs)
	fmt.Fprintln(ours, "cmd=get_appnum")
	ours.SetReadDeadline(time.Now().Add(5 * time.Second))
	if got, err := bufio.NewReader(ours).ReadString('\n'); got != "cmd=appnum appnum=2\n" {
		t.Errorf("rank 4 runs program 2: %q, %v", got, err)
	}
}

func TestClientRejectsBadAnswers(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"another version":      {"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n", "Muster needs 1.1"},
		"a refusal":            {"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n", "rc=-1"},
		"garbage":              {"HTTP/1.1 400 Bad Request\n", "HTTP/1.1"},
		"an unsolicited error": {"cmd=sorry rc=5\n", "cmd=sorry"},
		"a closed socket":      {"", "gone"},
	} {
		ours, theirs := net.Pipe()
		go func() {
			bufio.NewReader(theirs).ReadString('\n')
			theirs.Write([]byte(c.answer))
			theirs.Close()
		}()
		if _, err := joinWire(t.Context(), ours, 0, 2, nil, nil, Terms{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error must contain %q: %v", name, c.want, err)
		}
		ours.Close()
	}
}
