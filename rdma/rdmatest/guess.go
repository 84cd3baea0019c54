package rdmatest

import (
	"bytes"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// RunGuesses checks that a device with RD queue pairs drops a peer that guesses memory
// keys, after at most limit refused accesses, and reports it by rdma.OpDisconnected; and
// that accesses to regions that were deregistered recently do not count. open opens n
// devices.
func RunGuesses(t *testing.T, limit int, open func(t testing.TB, n int) []rdma.Device) {
	g := &guessing{t: t}
	for _, d := range open(t, 3) {
		g.add(d)
	}
	victim, guesser, bystander := g.nodes[0], g.nodes[1], g.nodes[2]
	mem := bytes.Repeat([]byte{0x5A}, 4096)
	mr := g.register(victim, mem)
	for range 3 * limit { // accesses after Deregister, as after a failed operation
		ended := g.register(victim, make([]byte, 64))
		if err := victim.dev.Deregister(ended); err != nil {
			t.Fatal(err)
		}
		if status := g.access(guesser, victim, rdma.OpWrite, ended.Base, ended.RKey); status != rdma.StatusRemoteAccess {
			t.Fatalf("a write after Deregister ends with %v", status)
		}
	}
	if victim.gaveUp != nil {
		t.Fatalf("writes after Deregister count as guesses: %+v", victim.gaveUp)
	}
	if status := g.access(guesser, victim, rdma.OpWrite, mr.Base, mr.RKey); status != rdma.StatusOK || mem[0] != 7 {
		t.Fatalf("a valid write completes with %v and leaves %d", status, mem[0])
	}
	refused := 0
	for i := uint64(1); victim.gaveUp == nil; i++ {
		if refused > limit {
			t.Fatalf("%d guesses were refused, and the peer was not dropped", refused)
		}
		op := rdma.OpWrite
		if i%2 == 0 {
			op = rdma.OpRead
		}
		if g.access(guesser, victim, op, mr.Base, mr.RKey^i*0x9E3779B97F4A7C15) == rdma.StatusRemoteAccess {
			refused++
		}
	}
	if c := victim.gaveUp; c.Status != rdma.StatusRemoteAccess || c.Peer != victim.peers[guesser.index] {
		t.Errorf("the peer was dropped with %+v, want remote access refused and peer %d", *c, victim.peers[guesser.index])
	}
	mem[0] = 0x5A
	g.post(guesser, victim, rdma.OpWrite, mr.Base, mr.RKey)
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		g.poll()
	}
	if mem[0] != 0x5A {
		t.Error("a dropped peer can still write")
	}
	if status := g.access(bystander, victim, rdma.OpWrite, mr.Base, mr.RKey); status != rdma.StatusOK || mem[0] != 7 {
		t.Errorf("a write of another peer completes with %v", status)
	}
	g.post(victim, guesser, rdma.OpSend, 0, 0)
	if status := g.wait(victim); status == rdma.StatusOK {
		t.Error("a message to a dropped peer succeeds")
	}
}

// guessing holds the devices.
type guessing struct {
	t     *testing.T
	nodes []*guessNode
}

type guessNode struct {
	index  int
	dev    rdma.Device
	cq     rdma.CQ
	qp     rdma.QP
	peers  []rdma.PeerID // by index
	ended  *rdma.Completion
	gaveUp *rdma.Completion
	body   []byte
}

func (g *guessing) add(d rdma.Device) {
	n := &guessNode{index: len(g.nodes), dev: d, body: []byte{7}}
	var err error
	if n.cq, err = d.NewCQ(64); err != nil {
		g.t.Fatal(err)
	}
	srq, err := d.NewSRQ(rdma.SRQConfig{Lend: true})
	if err != nil {
		g.t.Fatal(err)
	}
	if n.qp, err = d.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: n.cq, RecvCQ: n.cq, SRQ: srq}); err != nil {
		g.t.Fatal(err)
	}
	g.nodes = append(g.nodes, n)
	for _, m := range g.nodes {
		m.peers = make([]rdma.PeerID, len(g.nodes))
		for i, o := range g.nodes {
			if m.peers[i], err = m.dev.Resolve(o.qp.Addr()); err != nil {
				g.t.Fatal(err)
			}
		}
	}
}

func (g *guessing) register(n *guessNode, mem []byte) rdma.MR {
	mr, err := n.dev.Register(mem, rdma.RemoteRead|rdma.RemoteWrite)
	if err != nil {
		g.t.Fatal(err)
	}
	return mr
}

func (g *guessing) post(from, to *guessNode, op rdma.Op, remote, key uint64) {
	from.ended, from.body[0] = nil, 7
	wr := []rdma.SendWR{{ID: 1, Op: op, Peer: from.peers[to.index], Body: rdma.MemOf(from.body), Remote: remote, RKey: key}}
	for {
		k, err := from.qp.PostSend(wr)
		if k == 1 {
			return
		}
		if err != rdma.ErrAgain {
			g.t.Fatal(err)
		}
		g.poll()
	}
}

func (g *guessing) access(from, to *guessNode, op rdma.Op, remote, key uint64) rdma.Status {
	g.post(from, to, op, remote, key)
	return g.wait(from)
}

// wait waits for the completion of a node's request, or until a peer was dropped: then
// there may be no answer.
func (g *guessing) wait(n *guessNode) rdma.Status {
	gaveUp := g.nodes[0].gaveUp
	for deadline := time.Now().Add(20 * time.Second); n.ended == nil; g.poll() {
		if g.nodes[0].gaveUp != gaveUp {
			return rdma.StatusFlushed
		}
		if time.Now().After(deadline) {
			g.t.Fatal("a request does not complete")
		}
	}
	return n.ended.Status
}

func (g *guessing) poll() {
	var out [8]rdma.Completion
	for _, n := range g.nodes {
		for _, c := range out[:n.cq.Poll(out[:])] {
			switch {
			case c.Op == rdma.OpDisconnected && n.gaveUp != nil:
				g.t.Errorf("a peer was dropped twice: %+v", c)
			case c.Op == rdma.OpDisconnected:
				n.gaveUp = &c
			case c.ID == 1:
				n.ended = &c
			}
		}
	}
}
