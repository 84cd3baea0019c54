package pmi

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// lowerServer connects a server to its parent by direct calls. Only the root is notified
// of fences, as when agents forward them.
type lowerServer struct {
	above, root *Server
	between     []*Server // servers between this one and the root
}

func (l *lowerServer) Values(values []Pair) {
	for _, s := range l.between {
		s.Merge(values)
	}
	l.root.Merge(values)
}

// report passes events to the root, which counts the ranks in a fence.
func (l *lowerServer) report(e Event) {
	if e.Fence {
		go l.root.Enter(e.Nth, 1) // asynchronous, as over a network
		return
	}
	l.root.Report(e)
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
		up := &lowerServer{above: root, root: root}
		if i == 1 {
			up.above, up.between = hosts[0], []*Server{hosts[0]}
		}
		hosts[i] = NewServer(ServerConfig{Size: size, JobID: "tree", Mapping: mapping, Serves: perHost, Up: up, Event: up.report})
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
	if root.FencesPassed() == 0 || root.FenceWaiters() != 0 {
		t.Errorf("the root has seen %d fences and %d ranks still in one", root.FencesPassed(), root.FenceWaiters())
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

// valuesOrder is an Upstream that records how many ranks were reported before the values.
type valuesOrder struct {
	mu       sync.Mutex
	reported int
	before   chan int
}

func (u *valuesOrder) Values([]Pair) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.before <- u.reported
}

func (u *valuesOrder) Get(_ string, done func(string, bool)) { done("", false) }

// The root releases a fence when the last rank is reported, and ranks may then request
// every value.
func TestValuesPrecedeTheLastRank(t *testing.T) {
	up := &valuesOrder{before: make(chan int, 1)}
	host := NewServer(ServerConfig{Size: 2, Serves: 2, Up: up, Event: func(e Event) {
		up.mu.Lock()
		defer up.mu.Unlock()
		if e.Fence {
			up.reported++
		}
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
	if n := <-up.before; n > 1 {
		t.Errorf("the values were sent when %d of 2 ranks had been reported; the last must follow them", n)
	}
	host.Release()
}

// A report that arrives after its fence was released must not count in the next one.
func TestEnterOfAnEarlierFence(t *testing.T) {
	root := NewServer(ServerConfig{Size: 4, Released: func() {}})
	root.Enter(0, 4)
	if root.FencesPassed() != 1 {
		t.Fatalf("all ranks have entered, and %d fences were released", root.FencesPassed())
	}
	root.Enter(0, 3)
	if root.FenceWaiters() != 0 {
		t.Errorf("%d ranks seem to wait in the second fence, which none has entered", root.FenceWaiters())
	}
	root.Enter(1, 3)
	root.Enter(1, 1)
	if root.FencesPassed() != 2 {
		t.Errorf("%d fences were released; want 2", root.FencesPassed())
	}
}

// With Keep, the root stores none of the values whose keys name their rank, and every rank
// gets every value all the same, also those of libraries with other keys.
func TestValuesAreKeptByTheirServers(t *testing.T) {
	const perHost = 2
	hosts := make([]*Server, 2)
	root := NewServer(ServerConfig{Size: 2 * perHost,
		Released: func() {
			for _, h := range hosts {
				h.Release()
			}
		},
		Fetch: func(rank int, key string, done func(string, bool)) {
			go func() { done(hosts[rank/perHost].StoredValue(key)) }()
		},
	})
	for i := range hosts {
		up := &lowerServer{above: root, root: root}
		hosts[i] = NewServer(ServerConfig{Size: 2 * perHost, Serves: perHost, Up: up, Event: up.report, Keep: true})
	}
	var all sync.WaitGroup
	for rank := range 2 * perHost {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close() })
		go hosts[rank/perHost].Serve(rank, theirs)
		all.Go(func() {
			c, err := joinWire(t.Context(), ours, rank, 2*perHost, nil, nil, Terms{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := c.Put("card", make([]byte, 700)); err != nil { // of two pieces
				t.Error(err)
			}
			host := hosts[rank/perHost]
			if err := host.Session(rank, io.Discard).Feed(fmt.Appendf(nil, "cmd=put kvsname=x key=P%d-card value=foreign\n", rank)); err != nil {
				t.Error(err)
			}
			if err := c.Fence(t.Context()); err != nil {
				t.Error(err)
			}
			other := (rank + perHost) % (2 * perHost)
			if got, err := c.Get(t.Context(), other, "card"); err != nil || len(got) != 700 {
				t.Errorf("rank %d requested the card of %d: %d bytes, %v", rank, other, len(got), err)
			}
			host.Lookup(fmt.Sprintf("P%d-card", other), func(value string, ok bool) {
				if !ok || value != "foreign" {
					t.Errorf("the value of another library: %q, %v", value, ok)
				}
			})
			host.Lookup(fmt.Sprintf("missing-%d", other), func(value string, ok bool) {
				if ok {
					t.Errorf("a missing value: %q", value)
				}
			})
		})
	}
	all.Wait()
	root.mu.Lock()
	defer root.mu.Unlock()
	for key := range root.values {
		if keyRank(key) >= 0 {
			t.Errorf("the root stores %s", key)
		}
	}
	if len(root.values) != 1+2*perHost { // the mapping and the foreign keys
		t.Errorf("the root stores %d values; want %d", len(root.values), 1+2*perHost)
	}
}

func TestKeyRank(t *testing.T) {
	for key, want := range map[string]int{
		"card-0": 0, "card-17": 17, "card-17.3": 17, "a-b-5": 5, "-9": 9,
		"P0-businesscard": -1, "card": -1, "card-": -1, "": -1, "card-+3": -1, "card-.5": -1,
	} {
		if got := keyRank(key); got != want {
			t.Errorf("the rank of key %q: %d; want %d", key, got, want)
		}
	}
	for rank := range 3 {
		if got := keyRank(pieceKey("card", rank, rank)); got != rank {
			t.Errorf("the rank of the key of rank %d: %d", rank, got)
		}
	}
}
