package engine

// Jobs of several ranks in one process, over the reference device of rdma/rdmatest.

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// world is a job under test.
type world struct {
	t     *testing.T
	ranks []*Engine
	comms []Comm
	cqs   [][]*testCQ // by rank and lane
}

// testWorld runs fn in a synctest bubble with a job of so many ranks. nodes, if not nil,
// gives the node of each rank; then each rank has a local lane and a network lane, else
// one network lane.
func testWorld(t *testing.T, size int, nodes []int, configure func(rank int, c *Config), fn func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := startWorld(t, size, nodes, configure)
		w.resolve(nodes)
		defer w.close()
		fn(t, w)
	})
}

func startWorld(t *testing.T, size int, nodes []int, configure func(rank int, c *Config)) *world {
	w := newWorld(t, size, nodes, configure, func(rank int, err error) { t.Errorf("rank %d: New: %v", rank, err) })
	if t.Failed() {
		t.FailNow()
	}
	return w
}

// newWorld is startWorld with a function for errors of New.
func newWorld(t *testing.T, size int, nodes []int, configure func(rank int, c *Config), failed func(rank int, err error)) *world {
	w := &world{t: t, ranks: make([]*Engine, size), comms: make([]Comm, size), cqs: make([][]*testCQ, size)}
	lanes := make([][]LaneConfig, size)
	clients := pmi.NewLocal(size)
	add := func(rank int, dev rdma.Device, local bool) {
		lanes[rank] = append(lanes[rank], LaneConfig{Device: &testDevice{Device: dev, cqs: &w.cqs[rank]}, Local: local})
	}
	if nodes != nil {
		for r := range clients {
			clients[r] = &nodeClient{clients[r], nodes}
		}
		for node := range slices.Max(nodes) + 1 {
			local := ranksOn(nodes, node)
			for i, dev := range rdmatest.NewReferenceOf(len(local), testAttr("local")) {
				add(local[i], dev, true)
			}
		}
	}
	for r, dev := range rdmatest.NewReferenceOf(size, testAttr("net")) {
		add(r, dev, false)
	}
	var wg sync.WaitGroup
	for r := range w.ranks {
		wg.Go(func() {
			c := Config{Client: clients[r], Lanes: lanes[r], Spin: 4, Yield: 4, InProcess: true}
			if configure != nil {
				configure(r, &c)
			}
			e, err := New(t.Context(), c)
			if err != nil {
				failed(r, err)
				return
			}
			w.ranks[r] = e
			w.comms[r] = Comm{Rank: int32(r), Name: NewName("world"), Size: size}
		})
	}
	wg.Wait()
	return w
}

// resolve lets every device assign its peer handles in the order of ranks: a lane
// expects a peer's index on the node, or its rank, as the handle.
func (w *world) resolve(nodes []int) {
	for r, e := range w.ranks {
		for i, d := range e.held.lanes {
			for q, peer := range w.ranks {
				if d.local && nodes[q] != nodes[r] {
					continue
				}
				if _, err := d.dev.Resolve(peer.held.lanes[i].qp.Addr()); err != nil {
					w.t.Fatal(err)
				}
			}
		}
	}
}

func (w *world) close() {
	for r, e := range w.ranks {
		if err := e.Close(); err != nil {
			w.t.Errorf("rank %d: Close: %v", r, err)
		}
	}
}

// recv starts a receive in a goroutine. The channel gets its error.
func (w *world) recv(rank, from int, tag int32, buf []byte) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := w.ranks[rank].Recv(&w.comms[rank], "Recv", from, int32(from), tag, buf)
		ended <- err
	}()
	return ended
}

// send sends a short message, which does not wait for the receiver.
func (w *world) send(rank, to int, tag int32, text string) {
	w.t.Helper()
	if err := w.ranks[rank].Send(&w.comms[rank], "Send", to, tag, []byte(text), 0); err != nil {
		w.t.Fatalf("send from %d to %d: %v", rank, to, err)
	}
}

// connect opens the link from one rank to another with a message.
func (w *world) connect(rank, to int) {
	w.t.Helper()
	const tag = 1 << 20
	w.send(rank, to, tag, "x")
	if err := mustEnd(w.t, "the receive", w.recv(to, rank, tag, make([]byte, 1))); err != nil {
		w.t.Fatal(err)
	}
}

// locked calls fn with the lock of a rank held.
func (w *world) locked(rank int, fn func(e *Held)) {
	e := w.ranks[rank].lock()
	defer e.unlock()
	fn(e)
}

// pass lets d go by in the bubble, so that timers fire and the ranks go on.
func pass(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

// mustEnd returns the error of an operation that has ended.
func mustEnd(t *testing.T, what string, ended <-chan error) error {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-ended:
		return err
	default:
		t.Fatalf("%s has not ended", what)
		return nil
	}
}

// mustWait fails if an operation has ended.
func mustWait(t *testing.T, what string, ended <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-ended:
		t.Fatalf("%s has ended with %v", what, err)
	default:
	}
}

// countSleepers counts the goroutines that wait for the driver.
func (e *Held) countSleepers() (n int) {
	for w := e.waits.sleepers; w != nil; w = w.Next {
		n++
	}
	return n
}

func testAttr(name string) rdma.Attr {
	a := rdmatest.ReferenceAttr()
	a.Name = name
	return a
}

func ranksOn(nodes []int, node int) (ranks []int) {
	for r, n := range nodes {
		if n == node {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// nodeClient distributes the ranks of a local job over nodes.
type nodeClient struct {
	pmi.Client
	nodes []int
}

func (c *nodeClient) Node(rank int) int { return c.nodes[rank] }
func (c *nodeClient) LocalSize() int    { return len(ranksOn(c.nodes, c.nodes[c.Rank()])) }
func (c *nodeClient) LocalRank() int {
	return slices.Index(ranksOn(c.nodes, c.nodes[c.Rank()]), c.Rank())
}

// testDevice is a reference device whose completion queues are testCQs.
type testDevice struct {
	rdma.Device
	cqs *[]*testCQ
}

func (d *testDevice) NewCQ(depth int) (rdma.CQ, error) {
	inner, err := d.Device.NewCQ(depth)
	if err != nil {
		return nil, err
	}
	cq := &testCQ{CQ: inner}
	*d.cqs = append(*d.cqs, cq)
	return cq, nil
}

func (d *testDevice) NewQP(c rdma.QPConfig) (rdma.QP, error) {
	c.SendCQ, c.RecvCQ = c.SendCQ.(*testCQ).CQ, c.RecvCQ.(*testCQ).CQ
	return d.Device.NewQP(c)
}

// testCQ counts the calls of a completion queue and can be waited for beside others.
type testCQ struct {
	rdma.CQ
	polls int
	waits []time.Duration // timeouts of Wait
	most  int             // completions that one Poll returns; 0: as many as fit
	deaf  bool            // no event ends Wait
	// script, if not nil, is called at the start of each Poll. While it returns true the
	// Poll returns an event without effect and nothing else.
	script func() bool
}

func (c *testCQ) Poll(out []rdma.Completion) int {
	c.polls++
	if c.script != nil && c.script() {
		out[0] = rdma.Completion{Op: rdma.OpLowWater}
		return 1
	}
	if c.most > 0 {
		out = out[:min(len(out), c.most)]
	}
	return c.CQ.Poll(out)
}

func (c *testCQ) Wait(timeout time.Duration) error {
	c.waits = append(c.waits, timeout)
	if c.deaf {
		time.Sleep(timeout)
		return nil
	}
	return c.CQ.Wait(timeout)
}
