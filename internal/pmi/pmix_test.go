package pmi

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeSession is a PMIx session of one rank with the data of a test.
type fakeSession struct {
	mu      sync.Mutex
	values  map[string][]byte
	peers   string
	nodes   map[int]int
	fence   chan struct{} // closed: fences end
	aborted string
}

func (f *fakeSession) Namespace() string                 { return "job-7" }
func (f *fakeSession) Rank() int                         { return 3 }
func (f *fakeSession) JobText(key string) (string, bool) { return f.peers, f.peers != "" }
func (f *fakeSession) JobNumber(key string) (int, bool)  { return 6, key == pmixJobSize }
func (f *fakeSession) RankNumber(r int, k string) (int, bool) {
	n, ok := f.nodes[r]
	return n, ok && k == pmixNodeID
}
func (f *fakeSession) Fence(time.Duration) error  { <-f.fence; return nil }
func (f *fakeSession) Abort(code int, why string) { f.aborted = why }
func (f *fakeSession) Close() error               { return nil }
func (f *fakeSession) Put(key string, v []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.values[key] = v
	return nil
}
func (f *fakeSession) Get(_ int, key string, _ time.Duration) ([]byte, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.values[key]
	return v, ok, nil
}

func newFakeSession(peers string, nodes map[int]int) *fakeSession {
	return &fakeSession{values: map[string][]byte{}, peers: peers, nodes: nodes, fence: make(chan struct{})}
}

func TestPMIxNodes(t *testing.T) {
	c, err := newPMIxClient(newFakeSession("1,3,5", map[int]int{0: 10, 1: 11, 2: 10, 3: 11, 4: 10, 5: 11}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Rank() != 3 || c.Size() != 6 || c.JobID() != "job-7" || c.LocalRank() != 1 || c.LocalSize() != 3 {
		t.Errorf("rank 3 of 6, the second of 1, 3 and 5 on its node, is rank %d of %d in %s, %d of %d", c.Rank(), c.Size(), c.JobID(), c.LocalRank(), c.LocalSize())
	}
	if c.Node(5) != c.Node(3) || c.Node(0) == c.Node(3) || c.Node(0) != c.Node(4) {
		t.Errorf("nodes of ranks 0, 3, 4, 5: %d %d %d %d", c.Node(0), c.Node(3), c.Node(4), c.Node(5))
	}
}

func TestPMIxWithoutNodes(t *testing.T) {
	c, err := newPMIxClient(newFakeSession("", nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.LocalRank() != 0 || c.LocalSize() != 1 || c.Node(2) == c.Node(3) || c.Node(2) == c.Node(4) {
		t.Errorf("a launcher that reports no nodes: %d of %d, nodes of ranks 2, 3, 4: %d %d %d", c.LocalRank(), c.LocalSize(), c.Node(2), c.Node(3), c.Node(4))
	}
}

func TestPMIxCalls(t *testing.T) {
	f := newFakeSession("3", nil)
	c, err := newPMIxClient(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Put("card", []byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := c.Put("card", []byte("b")); err == nil || !strings.Contains(err.Error(), "once") {
		t.Errorf("a second value for a key must be rejected, as by other launchers: %v", err)
	}
	if v, err := c.Get(t.Context(), 3, "card"); err != nil || string(v) != "a" {
		t.Errorf("Get returned %q, %v", v, err)
	}
	time.AfterFunc(20*time.Millisecond, func() { f.Put("late", []byte("x")) })
	if v, err := c.Get(t.Context(), 1, "late"); err != nil || string(v) != "x" {
		t.Errorf("Get must wait for a value that is put later; it returned %q, %v", v, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Get(ctx, 1, "never"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `rank 1 has not put "never"`) {
		t.Errorf("a Get that times out must name rank and key: %v", err)
	}
	close(f.fence)
	if err := c.Fence(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Errorf("Close, also a second one, must succeed: %v", err)
		}
	}
	if err := c.Put("k", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Put after Close must return ErrClosed: %v", err)
	}
}

// A call into the library cannot be cancelled: after a timeout, the client rejects all
// further calls.
func TestPMIxFenceTimeout(t *testing.T) {
	f := newFakeSession("3", nil)
	defer close(f.fence)
	c, err := newPMIxClient(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for _, err := range []error{c.Fence(ctx), c.Fence(t.Context()), c.Put("k", nil)} {
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Fence") {
			t.Errorf("a Fence that timed out must be reported by this and later calls: %v", err)
		}
	}
}
