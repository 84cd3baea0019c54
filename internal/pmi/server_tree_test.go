package pmi

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// lowerServer connects a server to its parent by direct calls. Only the root is notified
// of fences, as when agents forward them.
type lowerServer struct {
	above, root *Server
	ranks       int
	between     []*Server // servers between this one and the root
}

func (l *lowerServer) Fence(values []Pair) {
	for _, s := range l.between {
		s.Merge(values)
	}
	l.root.Merge(values)
	go l.root.Enter(l.ranks)
}

func (l *lowerServer) Get(key string, done func(string, bool)) {
	go l.above.Lookup(key, done) // asynchronous, as over a network
}

// serveTree creates three hosts of perHost ranks: 1 is a child of 0, and 0 and 2 are
// children of the root, which serves no ranks.
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
		c, err := joinWire(t.Context(), ours, rank, size, nil, nil, Terms{})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	return root, hosts, clients
}

func TestServerTree(t *testing.T) {
	root, _, clients := serveTree(t, 3)
	for rank, c := range clients {
		if c.LocalRank() != rank%3 || c.LocalSize() != 3 || c.Node(rank) != rank/3 {
			t.Errorf("rank %d has a wrong node: %d of %d on node %d", rank, c.LocalRank(), c.LocalSize(), c.Node(rank))
		}
	}
	exchange(t, clients)
	for rank := range clients {
		if root.Phase(rank) != PhaseFinalized {
			t.Errorf("rank %d must be finalized at the root: %v", rank, root.Phase(rank))
		}
	}
	if root.Passed() == 0 || root.Fenced() != 0 {
		t.Errorf("the root has seen %d fences and %d ranks still in one", root.Passed(), root.Fenced())
	}
}

func TestServerTreeForwardsGets(t *testing.T) {
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
			t.Fatalf("rank %d requested the card of %d: %q, %v", from, of, got, err)
		}
	}
	forwarded := func() (n [3]uint64) {
		for i, h := range hosts {
			n[i] = h.Counts().Forwarded
		}
		return n
	}
	get(0, 1) // of the same host
	get(0, 5) // of the child host, whose values passed through here
	if got := forwarded(); got != [3]uint64{} {
		t.Errorf("requests for values that passed through must not be forwarded: %v", got)
	}
	get(8, 0)
	get(9, 0) // another rank of that host: its server has cached the value
	get(8, 0)
	if got := forwarded(); got != [3]uint64{0, 0, 1} {
		t.Errorf("the card of rank 0 must be forwarded once by host 2: %v", got)
	}
	get(4, 11) // from host 1 through host 0
	if got := forwarded(); got != [3]uint64{1, 1, 1} {
		t.Errorf("a get must be forwarded step by step: %v", got)
	}
	if got := root.Counts().Gets - atStart; got != 2 {
		t.Errorf("the root must get two requests, not %d: values are not broadcast", got)
	}
	if got := root.Counts().Forwarded; got != 0 {
		t.Errorf("the root has no parent, but forwarded %d requests", got)
	}
}

func TestMissingValueIsNotCached(t *testing.T) {
	_, hosts, clients := serveTree(t, 1)
	missing := make(chan bool, 1)
	hosts[1].Lookup("late-2", func(_ string, ok bool) { missing <- ok })
	if <-missing {
		t.Fatal("the value has not been put yet")
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
		t.Error("after the fence the value must be found: its absence must not be cached")
	}
}

// reportOrder is an Upstream that records how many ranks were reported before the fence
// was.
type reportOrder struct {
	mu       sync.Mutex
	reported int
	before   chan int
}

func (u *reportOrder) Fence([]Pair) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.before <- u.reported
}

func (u *reportOrder) Get(_ string, done func(string, bool)) { done("", false) }

// A rank that is reported after its fence was released would seem to wait in the next one,
// and a rank that has exited since would seem to block it.
func TestFenceEventsPrecedeFence(t *testing.T) {
	up := &reportOrder{before: make(chan int, 1)}
	host := NewServer(ServerConfig{Size: 2, Serves: 2, Up: up, Event: func(e Event) {
		if !e.Fence {
			return
		}
		if e.Rank == 0 {
			time.Sleep(50 * time.Millisecond) // let the other rank be faster
		}
		up.mu.Lock()
		up.reported++
		up.mu.Unlock()
	}})
	for rank := range 2 {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close() })
		go host.Serve(rank, theirs)
		c, err := joinWire(t.Context(), ours, rank, 2, nil, nil, Terms{})
		if err != nil {
			t.Fatal(err)
		}
		go c.Fence(t.Context())
	}
	if n := <-up.before; n != 2 {
		t.Errorf("the parent was notified of the fence when %d of 2 ranks had been reported", n)
	}
	host.Release()
}
