package nodecoll

// A rig of ranks that are goroutines, with channels for the messages.

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// rig connects the ranks of one test.
type rig struct {
	size    int
	wakes   [][]chan struct{} // to rank, with the name of rank
	letters [][]chan []byte   // to rank, from rank
	dead    atomic.Int32      // 1 + the dead rank
	sleeps  atomic.Int64
	woken   atomic.Int64
	polls   atomic.Int64
	yields  int // polls before a rank sleeps
	rejects int // 1 + a rank that cannot map the segment
	host    *Host
}

func newRig(size int) *rig {
	g := &rig{size: size, yields: 200, host: NewHost()}
	for range size {
		var wakes []chan struct{}
		var letters []chan []byte
		for range size {
			wakes = append(wakes, make(chan struct{}, 1))
			letters = append(letters, make(chan []byte, 4))
		}
		g.wakes, g.letters = append(g.wakes, wakes), append(g.letters, letters)
	}
	return g
}

// testRank is one rank: its Driver and its Exchange.
type testRank struct {
	*rig
	rank int
}

var errDied = errors.New("has died")

func (s testRank) Poll(op string, n int) (bool, error) {
	if d := s.dead.Load(); d != 0 {
		return false, fmt.Errorf("rank %d %w", d-1, errDied)
	}
	s.polls.Add(1)
	runtime.Gosched()
	return n >= s.yields, nil
}

// untilPolled waits until ranks have polled n times from now on: they wait.
func (g *rig) untilPolled(n int64) {
	for end := g.polls.Load() + n; g.polls.Load() < end && g.sleeps.Load() == g.woken.Load(); {
		runtime.Gosched()
	}
}

func (s testRank) Sleep(op string, peer int) error {
	s.sleeps.Add(1)
	for {
		select {
		case <-s.wakes[s.rank][peer]:
			return nil
		case <-time.After(5 * time.Millisecond):
			if _, err := s.Poll("", 0); err != nil {
				return err
			}
		}
	}
}

func (s testRank) InOperation() bool { return false }

func (s testRank) Wake(op string, peer, name int) error {
	s.woken.Add(1)
	select {
	case s.wakes[peer][name] <- struct{}{}:
		return nil
	default:
		return fmt.Errorf("rank %d was woken twice for one sleep", peer)
	}
}

func (s testRank) Send(to int, b []byte) error {
	s.letters[to][s.rank] <- append([]byte(nil), b...)
	return nil
}

func (s testRank) Recv(from int, b []byte) (int, error) {
	return copy(b, <-s.letters[s.rank][from]), nil
}

// form forms the team of one rank.
func (s testRank) form(oversubscribed bool) (*Team, error) {
	host := s.host
	if s.rejects == s.rank+1 {
		host = NewHost() // without rank 0's segment
	}
	t, err := Form(Config{Rank: s.rank, Size: s.size, Driver: s, Exchange: s, Host: host, Oversubscribed: oversubscribed})
	if t != nil {
		t.ShareHistory()
	}
	return t, err
}

// run calls fn on every rank, and fails if that does not end.
func (g *rig) run(t testing.TB, oversubscribed bool, fn func(t testing.TB, team *Team)) {
	t.Helper()
	var wg sync.WaitGroup
	for r := range g.size {
		wg.Go(func() {
			team, err := testRank{g, r}.form(oversubscribed)
			if err != nil {
				t.Errorf("rank %d: form the team: %v", r, err)
				return
			}
			fn(t, team)
			if err := team.Close(); err != nil {
				t.Errorf("rank %d: Close: %v", r, err)
			}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(60 * time.Second):
		buf := make([]byte, 1<<16)
		t.Fatalf("the ranks have not finished\n%s", buf[:runtime.Stack(buf, true)])
	}
	if s, w := g.sleeps.Load(), g.woken.Load(); s != w && g.dead.Load() == 0 {
		t.Errorf("%d sleeps, %d wake-ups: they must be equal", s, w)
	}
	if n := len(g.host.regions); n != 0 {
		t.Errorf("%d segments are still known to the host", n)
	}
}
