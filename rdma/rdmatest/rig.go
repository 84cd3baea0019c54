package rdmatest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// A rig drives the devices under test: newRig opens them and creates their queues, connect
// introduces them to each other, step polls all of them, and until and settle poll for as
// long as needed. node.go checks every completion, whoever polls.

// rig holds some devices with their queues.
type rig struct {
	t           testing.TB
	kind        rdma.Transport
	hangTimeout time.Duration
	cfg         queueConfig
	nodes       []*node
	random      generator

	reset       func() int // Fixture's
	unconnected string
	ends        bool // a refusal may end a connection
}

// queueConfig configures the queues of a node.
type queueConfig struct {
	posted     bool // the SRQ takes buffers instead of lending its own
	ownQueue   bool // no SRQ: buffers are posted to the queue pair
	split      bool // sends and receives have a CQ each
	unresolved bool // no node resolves the others
	recvDepth  int
	lowWater   int
}

// port is a queue pair with its queues. RD and UD nodes have one. RC nodes have one for
// each peer, with its own completion queues, because an RC completion need not identify
// its queue pair.
type port struct {
	qp     rdma.QP
	sendCQ rdma.CQ
	recvCQ rdma.CQ
	srq    rdma.SRQ
	peer   int // RC: the peer at the other end
}

const cqDepth = 4096

func newRig(t testing.TB, f *Fixture, kind rdma.Transport, n int, cfg queueConfig) *rig {
	t.Helper()
	r := &rig{t: t, kind: kind, hangTimeout: f.hangTimeout, cfg: cfg, random: generator(n), reset: f.Reset, unconnected: f.Unconnected, ends: kind == rdma.RC || f.Ends != ""}
	if r.hangTimeout == 0 {
		r.hangTimeout = 10 * time.Second
	}
	devs := f.Open(t, n)
	if len(devs) != n {
		t.Fatalf("Fixture.Open returned %d devices instead of %d", len(devs), n)
	}
	for i, dev := range devs {
		nd := &node{rig: r, index: i, dev: dev, attr: dev.Attr(), works: map[uint64]*work{}, names: map[rdma.PeerID]int{}}
		nd.lastID = uint64(0xA5C3_0000_0000_0000) + uint64(i)<<32 // all 64 bits must be returned
		r.nodes = append(r.nodes, nd)
		peers := 1
		if kind == rdma.RC {
			peers = n
		}
		for peer := range peers {
			if kind == rdma.RC && peer == i {
				nd.ports = append(nd.ports, nil)
				continue
			}
			nd.ports = append(nd.ports, r.newPort(nd, peer))
		}
	}
	r.connect()
	return r
}

func (r *rig) newPort(n *node, peer int) *port {
	r.t.Helper()
	p := &port{peer: peer}
	var err error
	p.recvCQ, err = n.dev.NewCQ(cqDepth)
	r.requireMade(err, "completion queue")
	p.sendCQ = p.recvCQ
	if r.cfg.split {
		p.sendCQ, err = n.dev.NewCQ(cqDepth)
		r.requireMade(err, "second completion queue")
	}
	if !r.cfg.ownQueue {
		p.srq, err = n.dev.NewSRQ(rdma.SRQConfig{Lend: !r.cfg.posted, Depth: r.cfg.recvDepth, LowWater: r.cfg.lowWater})
		r.requireMade(err, "shared receive queue")
	}
	qcfg := rdma.QPConfig{Type: r.kind, SendCQ: p.sendCQ, RecvCQ: p.recvCQ}
	if p.srq != nil {
		qcfg.SRQ = p.srq
	}
	p.qp, err = n.dev.NewQP(qcfg)
	r.requireMade(err, "queue pair")
	if a := string(p.qp.Addr()); a == "" || strings.ContainsFunc(a, func(c rune) bool { return c <= ' ' || c > '~' }) {
		r.t.Errorf("address %q of node %d is not printable text without spaces", a, n.index)
	}
	return p
}

// requireMade ends the check if a queue could not be created. A device may lack a kind of queue
// if it returns ErrUnsupported.
func (r *rig) requireMade(err error, what string) {
	r.t.Helper()
	if errors.Is(err, rdma.ErrUnsupported) {
		r.t.Skipf("the device does not support this %s: %v", what, err)
	}
	if err != nil {
		r.t.Fatalf("make a %s: %v", what, err)
	}
}

// connect introduces the nodes to each other, in a different order on each.
func (r *rig) connect() {
	r.t.Helper()
	for i, n := range r.nodes {
		n.peers = make([]rdma.PeerID, len(r.nodes))
		for k := 1; k < len(r.nodes); k++ {
			j := (i + k) % len(r.nodes)
			switch {
			case r.kind == rdma.RC && i < j:
				r.connectPair(n, r.nodes[j])
			case r.kind != rdma.RC && !r.cfg.unresolved:
				n.resolve(j)
			}
		}
	}
}

// connectPair connects two RC queue pairs, both ends concurrently.
func (r *rig) connectPair(a, b *node) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), r.hangTimeout)
	defer cancel()
	var wg sync.WaitGroup
	var errA, errB error
	pa, pb := a.ports[b.index].qp, b.ports[a.index].qp
	wg.Go(func() { errA = pa.Connect(ctx, pb.Addr()) })
	wg.Go(func() { errB = pb.Connect(ctx, pa.Addr()) })
	wg.Wait()
	if err := errors.Join(errA, errB); err != nil {
		r.t.Fatalf("connect node %d with node %d: %v", a.index, b.index, err)
	}
}

// step polls the given nodes, or all nodes, once.
func (r *rig) step(nodes ...*node) {
	r.t.Helper()
	if len(nodes) == 0 {
		nodes = r.nodes
	}
	for _, n := range nodes {
		n.poll()
		if n.wrong != nil {
			r.t.Fatal(n.wrong)
		}
	}
}

// complete posts a request and polls until it has completed. The sentence says so.
func (r *rig) complete(n *node, w *work, sentence string) {
	r.t.Helper()
	r.post(n, w)
	r.pollUntil(sentence, func() bool { return w.done })
}

// offerInParallel posts the requests of each node, one at a time, from a goroutine for each
// node, which then polls until they have completed.
func (r *rig) offerInParallel(todo [][]*work) {
	r.t.Helper()
	r.parallel(func(n *node) (bool, error) {
		mine := &todo[n.index]
		if len(*mine) > 0 {
			took, err := n.offer((*mine)[:1])
			*mine = (*mine)[took:]
			return false, ignoreAgain(err)
		}
		return n.open == 0, nil
	})
}

// pollUntil polls until cond holds. The sentence describes the expected condition.
func (r *rig) pollUntil(sentence string, cond func() bool, nodes ...*node) {
	r.t.Helper()
	deadline := time.Now().Add(r.hangTimeout)
	for round := 0; !cond(); round++ {
		r.step(nodes...)
		if round%64 == 63 {
			runtime.Gosched()
			if time.Now().After(deadline) {
				r.t.Fatalf("after %v of polling, still not: %s\n%s", r.hangTimeout, sentence, r.state())
			}
		}
	}
}

// settle polls for a while, during which nothing more should happen.
func (r *rig) settle(nodes ...*node) {
	r.t.Helper()
	for round := 0; round < 200; round++ {
		r.step(nodes...)
		if round%50 == 49 {
			time.Sleep(500 * time.Microsecond) // a device on top of the kernel needs time, not polls
		}
	}
}

// post posts work until all of it is accepted, and polls all nodes in between.
func (r *rig) post(n *node, ws ...*work) {
	r.t.Helper()
	deadline := time.Now().Add(r.hangTimeout)
	for len(ws) > 0 {
		run := 1
		for run < len(ws) && n.portTo(ws[run].to) == n.portTo(ws[0].to) {
			run++
		}
		k, err := n.offer(ws[:run])
		if err != nil && !errors.Is(err, rdma.ErrAgain) {
			r.t.Fatalf("node %d posts %v to node %d: %v", n.index, ws[k].op, ws[k].to, err)
		}
		ws = ws[k:]
		if err != nil {
			r.step()
			if time.Now().After(deadline) {
				r.t.Fatalf("node %d gets ErrAgain for %v to node %d for %v although all nodes poll\n%s",
					n.index, ws[0].op, ws[0].to, r.hangTimeout, r.state())
			}
		}
	}
}

// parallel drives every node from its own goroutine. A node that has finished keeps
// polling until all have, because devices may depend on it.
func (r *rig) parallel(part func(n *node) (done bool, err error)) {
	r.t.Helper()
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		missing  = len(r.nodes)
		failure  error
		deadline = time.Now().Add(r.hangTimeout)
	)
	for _, n := range r.nodes {
		wg.Go(func() {
			finished := false
			for {
				done, err := part(n)
				n.poll()
				err = errors.Join(err, n.wrong)
				mu.Lock()
				if err == nil && time.Now().After(deadline) {
					err = fmt.Errorf("node %d has not finished after %v: %s", n.index, r.hangTimeout, n.state())
				}
				if err != nil && failure == nil {
					failure = err
				}
				if done && !finished {
					finished = true
					missing--
				}
				over := missing == 0 || failure != nil
				mu.Unlock()
				if over {
					return
				}
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	if failure != nil {
		r.t.Fatal(failure)
	}
}

// exchangeOnce sends a message from every node to every other.
func (r *rig) exchangeOnce() {
	r.t.Helper()
	for _, n := range r.nodes {
		for _, to := range r.nodes {
			if to != n {
				r.post(n, n.send(to.index, 8, 100))
			}
		}
	}
	r.pollUntil("every node has a message from every other", func() bool {
		for _, n := range r.nodes {
			if len(n.arrived) < len(r.nodes)-1 || n.open > 0 {
				return false
			}
		}
		return true
	})
}

// state describes all nodes for a failure message.
func (r *rig) state() string {
	var b strings.Builder
	for _, n := range r.nodes {
		fmt.Fprintf(&b, "\tnode %d: %s\n", n.index, n.state())
	}
	return b.String()
}
