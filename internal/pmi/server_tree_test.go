package pmi

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// lowerServer is the way from a server to the one above, by direct calls. Only
// the root is told of fences, as when agents pass them on.
type lowerServer struct {
	above, root *Server
	ranks       int
	between     []*Server // servers that values pass on their way to the root
}

func (l *lowerServer) Fence(values []Pair) {
	for _, s := range l.between {
		s.Merge(values)
	}
	l.root.Merge(values)
	go l.root.Enter(l.ranks)
}

func (l *lowerServer) Get(key string, done func(string, bool)) {
	go l.above.Lookup(key, done) // as if it came over a wire
}

// serveTree makes three hosts of perHost ranks: 1 is below 0, and 0 and 2 are
// below the root, which serves nobody.
func serveTree(t *testing.T, perHost int) (root *Server, hosts []*Server, clients []Client) {
	t.Helper()
	size := 3 * perHost
	mapping := fmt.Sprintf("(vector,(0,3,%d))", perHost)
	hosts = make([]*Server, 3)
	root = NewServer(ServerConfig{Size: size, JobID: "tree", Mapping: mapping, Released: func() {
		for _, h := range hosts {
			h.Release()
		}
	}})
	for i := range hosts {
		up := &lowerServer{above: root, root: root, ranks: perHost}
		if i == 1 {
			up.above, up.between = hosts[0], []*Server{hosts[0]}
		}
		hosts[i] = NewServer(ServerConfig{Size: size, JobID: "tree", Mapping: mapping, Serves: perHost, Up: up, Event: root.Report})
	}
	for rank := range size {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close() })
		go hosts[rank/perHost].Serve(rank, theirs)
		c, err := joinWire(t.Context(), ours, rank, size, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	return root, hosts, clients
}

func TestServersOfSeveralHostsAreOneService(t *testing.T) {
	root, _, clients := serveTree(t, 3)
	for rank, c := range clients {
		if c.LocalRank() != rank%3 || c.LocalSize() != 3 || c.Node(rank) != rank/3 {
			t.Errorf("rank %d has a wrong place: %d of %d on node %d", rank, c.LocalRank(), c.LocalSize(), c.Node(rank))
		}
	}
	exchange(t, clients)
	for rank := range clients {
		if root.Phase(rank) != PhaseFinalized {
			t.Errorf("the root must know that rank %d has finalized: %v", rank, root.Phase(rank))
		}
	}
	if root.Passed() == 0 || root.Fenced() != 0 {
		t.Errorf("the root has seen %d fences and %d ranks still in one", root.Passed(), root.Fenced())
	}
}

func TestGetsAreForwardedOnlyForWhatIsNotHere(t *testing.T) {
	root, hosts, clients := serveTree(t, 4)
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			if err := c.Put("card", fmt.Appendf(nil, "card of %d", c.Rank())); err != nil {
				t.Error(err)
			}
			if err := c.Fence(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	atStart := root.Counts().Gets
	get := func(from, of int) {
		t.Helper()
		if got, err := clients[from].Get(t.Context(), of, "card"); err != nil || string(got) != fmt.Sprintf("card of %d", of) {
			t.Fatalf("rank %d asked for the card of %d: %q, %v", from, of, got, err)
		}
	}
	forwarded := func() (n [3]uint64) {
		for i, h := range hosts {
			n[i] = h.Counts().Forwarded
		}
		return n
	}
	get(0, 1) // of the same host
	get(0, 5) // of the host below, whose values came through here
	if got := forwarded(); got != [3]uint64{} {
		t.Errorf("what is on the way need not be asked for: %v were forwarded", got)
	}
	get(8, 0)
	get(9, 0) // another rank of that host: its server has kept the value
	get(8, 0)
	if got := forwarded(); got != [3]uint64{0, 0, 1} {
		t.Errorf("the card of rank 0 must be forwarded once by host 2: %v", got)
	}
	get(4, 11) // from host 1 through host 0
	if got := forwarded(); got != [3]uint64{1, 1, 1} {
		t.Errorf("a get from below goes up step by step: %v", got)
	}
	if got := root.Counts().Gets - atStart; got != 2 {
		t.Errorf("the root must have been asked twice, not %d times: nothing is sent to all", got)
	}
	if got := root.Counts().Forwarded; got != 0 {
		t.Errorf("there is nobody above the root, and it asked %d times", got)
	}
}

func TestGetOfWhatNobodyHasPutIsNotKept(t *testing.T) {
	_, hosts, clients := serveTree(t, 1)
	missing := make(chan bool, 1)
	hosts[1].Lookup("late-2", func(_ string, ok bool) { missing <- ok })
	if <-missing {
		t.Fatal("nobody has put it yet")
	}
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() {
			if c.Rank() == 2 {
				if err := c.Put("late", []byte("x")); err != nil {
					t.Error(err)
				}
			}
			if err := c.Fence(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	hosts[1].Lookup("late-2", func(_ string, ok bool) { missing <- ok })
	if !<-missing {
		t.Error("after the fence the value must be found: that it was missing must not be kept")
	}
}

// toldBefore is a way up that notes how many ranks were told of before it was told
// that all are in the fence.
type toldBefore struct {
	mu     sync.Mutex
	told   int
	before chan int
}

func (u *toldBefore) Fence([]Pair) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.before <- u.told
}

func (u *toldBefore) Get(_ string, done func(string, bool)) { done("", false) }

// A rank that is told of after its fence was released would seem to wait in another one,
// and who has ended since, to keep it waiting.
func TestEveryRankIsToldOfBeforeAllAreInTheFence(t *testing.T) {
	up := &toldBefore{before: make(chan int, 1)}
	host := NewServer(ServerConfig{Size: 2, Serves: 2, Up: up, Event: func(e Event) {
		if !e.Fence {
			return
		}
		if e.Rank == 0 {
			time.Sleep(50 * time.Millisecond) // the other one is faster
		}
		up.mu.Lock()
		up.told++
		up.mu.Unlock()
	}})
	for rank := range 2 {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close() })
		go host.Serve(rank, theirs)
		c, err := joinWire(t.Context(), ours, rank, 2, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		go c.Fence(t.Context())
	}
	if n := <-up.before; n != 2 {
		t.Errorf("the server above heard that all are in the fence when %d of 2 ranks had been told of", n)
	}
	host.Release()
}
