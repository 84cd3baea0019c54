package hybrid

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// Peers with real traffic: which are moved, how many connections there are, what happens
// when one breaks.

// node is a device with its queues and the messages it has received.
type node struct {
	t     *testing.T
	index int
	dev   *Device
	cq    *queue
	qp    *pair
	peers []rdma.PeerID
	sent  []uint64 // by node: number of the next message to it
	got   []uint64 // by node: messages received from it, in order
	names map[rdma.PeerID]int
	out   [16]rdma.Completion
	wr    [1]rdma.SendWR
	bad   []rdma.Completion
}

// newNodes opens devices and resolves all peers.
func newNodes(t *testing.T, n int, cfg Config) []*node {
	t.Helper()
	return newNodesEach(t, n, cfg, func(int, *Config) {})
}

// newNodesEach is newNodes with a function that changes the configuration of each.
func newNodesEach(t *testing.T, n int, cfg Config, change func(i int, cfg *Config)) []*node {
	t.Helper()
	var list []*node
	for i := range n {
		cfg.Name = uint32(i)
		change(i, &cfg)
		nd := &node{t: t, index: i, dev: openTest(t, cfg), sent: make([]uint64, n), got: make([]uint64, n), names: map[rdma.PeerID]int{}, peers: make([]rdma.PeerID, n)}
		cq, err := nd.dev.NewCQ(0)
		if err != nil {
			t.Fatal(err)
		}
		srq, err := nd.dev.NewSRQ(rdma.SRQConfig{Lend: true})
		if err != nil {
			t.Fatal(err)
		}
		qp, err := nd.dev.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: cq, RecvCQ: cq, SRQ: srq})
		if err != nil {
			t.Fatal(err)
		}
		nd.cq, nd.qp = cq.(*queue), qp.(*pair)
		list = append(list, nd)
	}
	for i, a := range list {
		for j, b := range list {
			if i == j {
				continue
			}
			id, err := a.dev.Resolve(b.qp.Addr())
			if err != nil {
				t.Fatal(err)
			}
			a.peers[j], a.names[id] = id, j
		}
	}
	return list
}

// send posts the next message to a node, and reports whether it was accepted.
func (n *node) send(to int) bool {
	n.wr[0] = rdma.SendWR{ID: 7, Op: rdma.OpSend, Flags: rdma.Inline, Peer: n.peers[to], HeadLen: 8}
	binary.BigEndian.PutUint64(n.wr[0].Head[:], n.sent[to])
	k, err := n.qp.PostSend(n.wr[:])
	if err != nil && !errors.Is(err, rdma.ErrAgain) {
		n.t.Fatalf("send message %d to node %d: %v", n.sent[to], to, err)
	}
	n.sent[to] += uint64(k)
	return k == 1
}

// poll polls once and checks that messages arrive in order.
func (n *node) poll() {
	k := n.cq.Poll(n.out[:])
	for i := range n.out[:k] {
		c := &n.out[i]
		if c.Op != rdma.OpRecv {
			n.bad = append(n.bad, *c)
			continue
		}
		from, ok := n.names[c.Peer]
		if number := binary.BigEndian.Uint64(c.Data.Bytes()); !ok || number != n.got[from] {
			n.t.Fatalf("message %d arrives from node %d (known %v), which should be message %d", number, from, ok, n.got[from])
		}
		n.got[from]++
	}
}

// testTimeout is far longer than any delay on a busy machine.
const testTimeout = 30 * time.Second

func until(t *testing.T, what string, nodes []*node, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(testTimeout)
	for round := 0; !cond(); round++ {
		for _, n := range nodes {
			n.poll()
		}
		if round%64 == 63 {
			runtime.Gosched()
			if time.Now().After(deadline) {
				t.Fatalf("after %v, still not: %s", testTimeout, what)
			}
		}
	}
}

// peerOf returns a node's state of another.
func (n *node) peerOf(to int) *peerState { return n.dev.peers[n.peers[to]] }

func (n *node) carriedBy(to int) path { return n.peerOf(to).path }

// counters returns the counters of a node.
func (n *node) counters() map[rdma.Counter]uint64 {
	list := map[rdma.Counter]uint64{}
	n.dev.Count(func(name rdma.Counter, v uint64) { list[name] += v })
	return list
}

// exchange sends messages from each node of a pair to the other until cond holds.
func exchange(t *testing.T, what string, nodes []*node, a, b int, cond func() bool) {
	t.Helper()
	until(t, what, nodes, func() bool {
		nodes[a].send(b)
		nodes[b].send(a)
		return cond()
	})
}

// arrived reports whether all messages of all nodes have arrived.
func arrived(nodes []*node) func() bool {
	return func() bool {
		for i, a := range nodes {
			for j, b := range nodes {
				if i != j && a.sent[j] != b.got[i] {
					return false
				}
			}
		}
		return true
	}
}

// TestBusyPeerIsMoved makes two of three nodes exchange many messages: they are moved, the
// third is not.
func TestBusyPeerIsMoved(t *testing.T) {
	for _, v := range []struct {
		name string
		cfg  Config
	}{
		{"plain", Config{CountMessages: true, BusyAfter: 40}},
		{"encrypted", Config{CountMessages: true, BusyAfter: 40, Encrypt: true}},
		{"with own buffers", Config{CountMessages: true, BusyAfter: 40, ConnectionBuffers: 8}},
	} {
		t.Run(v.name, func(t *testing.T) { busyPeerIsMoved(t, v.cfg) })
	}
}

func busyPeerIsMoved(t *testing.T, cfg Config) {
	nodes := newNodes(t, 3, cfg)
	nodes[0].send(2)
	exchange(t, "both directions are moved", nodes, 0, 1, func() bool {
		return nodes[0].carriedBy(1) == byConnection && nodes[1].carriedBy(0) == byConnection
	})
	for range 500 {
		nodes[0].send(1)
		nodes[1].send(0)
		nodes[0].poll()
		nodes[1].poll()
	}
	until(t, "all messages have arrived", nodes, arrived(nodes))
	if by := nodes[0].carriedBy(2); by != byDatagram {
		t.Errorf("a peer that got one message is carried by path %d", by)
	}
	if c := nodes[0].counters(); c[rdma.ConnectionsMade] != 1 || c[rdma.ConnectionsClosed] != 0 {
		t.Errorf("%d connections were made and %d closed; it should be 1 and 0", c[rdma.ConnectionsMade], c[rdma.ConnectionsClosed])
	}
}

// TestConnectionsAreBounded makes a node communicate with four others, one after the
// other, with room for two connections.
func TestConnectionsAreBounded(t *testing.T) {
	const most = 2
	nodes := newNodes(t, 5, Config{CountMessages: true, BusyAfter: 30, MaxConnections: most, Interval: 2 * time.Millisecond})
	for to := 1; to < len(nodes); to++ {
		exchange(t, "the peer that is busy now has a connection", nodes, 0, to, func() bool {
			if open := nodes[0].dev.policy.open; open > most {
				t.Fatalf("%d connections are open, %d may be", open, most)
			}
			return nodes[0].carriedBy(to) == byConnection && nodes[to].carriedBy(0) == byConnection
		})
	}
	until(t, "all messages have arrived", nodes, arrived(nodes))
	c := nodes[0].counters()
	if c[rdma.ConnectionsMade] < 4 || c[rdma.ConnectionsClosed] < 2 {
		t.Errorf("%d connections were made and %d closed; at least 4 and 2 were needed", c[rdma.ConnectionsMade], c[rdma.ConnectionsClosed])
	}
	if c[CountLost]+c[CountBroken] > 0 {
		t.Errorf("%d connections broke, %d peers were lost", c[CountBroken], c[CountLost])
	}
}

// TestBrokenConnectionLosesNothing breaks a connection that has delivered everything, by a
// forged access, again and again. Messages continue.
func TestBrokenConnectionLosesNothing(t *testing.T) {
	nodes := newNodes(t, 2, Config{CountMessages: true, BusyAfter: 10, Interval: time.Millisecond})
	a, b := nodes[0], nodes[1]
	var body [8]byte
	for round := range 3 {
		exchange(t, "both are moved", nodes, 0, 1, func() bool {
			return a.carriedBy(1) == byConnection && b.carriedBy(0) == byConnection
		})
		until(t, "all messages have arrived", nodes, arrived(nodes))
		wr := [1]rdma.SendWR{{ID: 99, Op: rdma.OpWrite, Peer: a.peers[1], Body: rdma.MemOf(body[:]), Remote: 1, RKey: 12345}}
		until(t, "the forged access is accepted", nodes, func() bool {
			k, err := a.qp.PostSend(wr[:])
			if err != nil && !errors.Is(err, rdma.ErrAgain) {
				t.Fatal(err)
			}
			return k == 1
		})
		until(t, "it is refused", nodes, func() bool { return len(a.bad) == round+1 })
		if c := a.bad[round]; c.ID != 99 || c.Status != rdma.StatusRemoteAccess || c.Peer != a.peers[1] {
			t.Fatalf("a forged access completes as %+v", c)
		}
		until(t, "both are back", nodes, func() bool { return a.peerOf(1).phase == noConnection && b.peerOf(0).phase == noConnection })
	}
	for range 100 {
		a.send(1)
		b.send(0)
		a.poll()
		b.poll()
	}
	until(t, "all messages have arrived", nodes, arrived(nodes))
	if c := a.counters(); c[CountBroken] != 3 || c[CountLost] != 0 {
		t.Errorf("%d connections broke and %d peers were lost; it should be 3 and 0", c[CountBroken], c[CountLost])
	}
}

// moveBoth exchanges messages until a connection carries both directions.
func moveBoth(t *testing.T, nodes []*node) {
	t.Helper()
	a, b := nodes[0], nodes[1]
	exchange(t, "both are moved", nodes, 0, 1, func() bool {
		return a.carriedBy(1) == byConnection && b.carriedBy(0) == byConnection && a.peerOf(1).phase == joined && b.peerOf(0).phase == joined
	})
	until(t, "all messages have arrived", nodes, arrived(nodes))
}

// reset resets the connection of two nodes, at the socket of a.
func reset(t *testing.T, a, b *node) {
	t.Helper()
	listens := func(n *node, peer int) uint16 {
		at, _, _ := strings.Cut(string(n.peerOf(peer).conn.qp.Addr()), "/")
		return netip.MustParseAddrPort(at).Port()
	}
	here, there := listens(a, b.index), listens(b, a.index)
	if n := rdmatest.ResetTCP(func(local, remote netip.AddrPort) bool { return local.Port() == here || remote.Port() == there }); n != 1 {
		t.Fatalf("%d connections were reset, want 1", n)
	}
}

// repaired reports whether two nodes have continued after so many broken connections.
func repaired(nodes []*node, times int) func() bool {
	return func() bool {
		return nodes[0].dev.losses.repaired == uint64(times) && nodes[1].dev.losses.repaired == uint64(times)
	}
}

// TestResetConnectionLosesNothing resets a connection that has accepted messages which the
// peer's kernel has not acked: all of them arrive, and in order.
func TestResetConnectionLosesNothing(t *testing.T) {
	for _, encrypt := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypt %v", encrypt), func(t *testing.T) {
			resetUnderLoad(t, Config{CountMessages: true, BusyAfter: 10, Interval: time.Millisecond, Encrypt: encrypt})
		})
	}
}

func resetUnderLoad(t *testing.T, cfg Config) {
	nodes := newNodes(t, 2, cfg)
	a, b := nodes[0], nodes[1]
	for round := range 20 {
		moveBoth(t, nodes)
		body := make([]byte, 8000)
		for sent := 0; sent < 100*(round+1); sent++ { // b does not poll: some stay in a's socket
			a.wr[0] = rdma.SendWR{ID: 7, Op: rdma.OpSend, Flags: rdma.Inline, Peer: a.peers[1], HeadLen: 8, Body: rdma.MemOf(body)}
			binary.BigEndian.PutUint64(a.wr[0].Head[:], a.sent[1])
			if k, err := a.qp.PostSend(a.wr[:]); k == 0 {
				if !errors.Is(err, rdma.ErrAgain) {
					t.Fatal(err)
				}
				break
			}
			a.sent[1]++
		}
		reset(t, a, b)
		until(t, "all messages have arrived", nodes, arrived(nodes))
		until(t, "both have continued", nodes, repaired(nodes, round+1))
	}
	if c := a.counters(); c[CountRepaired] == 0 || c[CountLost] != 0 || len(a.bad)+len(b.bad) > 0 {
		t.Errorf("%d connections were repaired, %d peers lost, completions %+v and %+v", c[CountRepaired], c[CountLost], a.bad, b.bad)
	}
}

// TestAccessesSurviveReset resets a connection with outstanding Reads and Writes: each
// completes once, with the right bytes.
func TestAccessesSurviveReset(t *testing.T) {
	nodes := newNodes(t, 2, Config{CountMessages: true, BusyAfter: 10, Interval: time.Millisecond})
	a, b := nodes[0], nodes[1]
	const length = 300_000
	there := make([]byte, 2*length)
	mr, err := b.dev.Register(there, rdma.RemoteRead|rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 10 {
		moveBoth(t, nodes)
		from, to := bytes.Repeat([]byte{byte(round + 1)}, length), make([]byte, length)
		copy(there[length:], bytes.Repeat([]byte{byte(100 + round)}, length))
		wrs := []rdma.SendWR{
			{ID: 21, Op: rdma.OpWrite, Peer: a.peers[1], Body: rdma.MemOf(from), Remote: mr.Base, RKey: mr.RKey},
			{ID: 22, Op: rdma.OpRead, Peer: a.peers[1], Body: rdma.MemOf(to), Remote: mr.Base + length, RKey: mr.RKey},
		}
		until(t, "the accesses are accepted", nodes, func() bool {
			n, err := a.qp.PostSend(wrs)
			if wrs = wrs[n:]; err != nil && !errors.Is(err, rdma.ErrAgain) {
				t.Fatal(err)
			}
			return len(wrs) == 0
		})
		a.send(1)
		reset(t, nodes[round%2], nodes[1-round%2])
		until(t, "the accesses have completed", nodes, func() bool { return len(a.bad) >= 2 })
		for _, c := range a.bad {
			if c.Status != rdma.StatusOK || c.Len != length || c.ID != 21 && c.ID != 22 {
				t.Errorf("round %d: a completion %+v", round, c)
			}
		}
		if len(a.bad) != 2 || !bytes.Equal(there[:length], from) || !bytes.Equal(to, there[length:]) {
			t.Errorf("round %d: %d completions, or wrong bytes", round, len(a.bad))
		}
		a.bad = nil
		until(t, "both have continued", nodes, repaired(nodes, round+1))
	}
}

// TestLostMessagesAreReported ends a connection at a peer that has acked messages but not
// read them, so that they are lost: the sender is notified although it posts nothing, and
// later sends fail with an error that names the peer.
func TestLostMessagesAreReported(t *testing.T) {
	nodes := newNodes(t, 2, Config{CountMessages: true, BusyAfter: 10, Interval: time.Millisecond, NoThread: true})
	a, b := nodes[0], nodes[1]
	moveBoth(t, nodes)
	h := &a.peerOf(1).conn.history
	for begin := h.first; h.first < begin+ackEvery; time.Sleep(time.Millisecond) { // real time: b's kernel acks, and b does not poll
		a.send(1)
		a.poll()
	}
	_ = b.peerOf(0).conn.qp.Close() // as if its host had lost it
	until(t, "the loss is reported", nodes, func() bool { return len(a.bad) > 0 })
	if c := a.bad[0]; c.Op != rdma.OpDisconnected || c.Peer != a.peers[1] || c.Status != rdma.StatusPeerGone {
		t.Errorf("the report is %+v", c)
	}
	if c := a.counters(); c[CountLost] != 1 {
		t.Errorf("%d peers are counted as lost", c[CountLost])
	}
	a.wr[0] = rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, Peer: a.peers[1], HeadLen: 8}
	if _, err := a.qp.PostSend(a.wr[:]); err == nil || !strings.Contains(err.Error(), "connection to peer 1") {
		t.Errorf("a send to a lost peer returns %v", err)
	}
}

// TestPeerThatDies closes the device of a peer that has a connection: sends to it fail and
// do not hang.
func TestPeerThatDies(t *testing.T) {
	nodes := newNodes(t, 2, Config{CountMessages: true, BusyAfter: 10})
	a, b := nodes[0], nodes[1]
	exchange(t, "both are moved", nodes, 0, 1, func() bool {
		return a.carriedBy(1) == byConnection && b.carriedBy(0) == byConnection
	})
	until(t, "all messages have arrived", nodes, arrived(nodes))
	if err := b.dev.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	until(t, "a send fails", nodes[:1], func() bool {
		a.wr[0] = rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, Peer: a.peers[1], HeadLen: 8}
		_, err = a.qp.PostSend(a.wr[:])
		return err != nil && !errors.Is(err, rdma.ErrAgain)
	})
	if want := "peer 1"; !strings.Contains(err.Error(), want) {
		t.Errorf("the error does not name %s: %v", want, err)
	}
	for _, c := range a.bad {
		if c.Status == rdma.StatusOK || c.Peer != a.peers[1] {
			t.Errorf("a completion after the peer's end: %+v", c)
		}
	}
}

// TestSteadyStateAllocatesNothing sends over a connection.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	nodes := newNodes(t, 2, Config{CountMessages: true, BusyAfter: 10})
	a, b := nodes[0], nodes[1]
	exchange(t, "both are moved", nodes, 0, 1, func() bool {
		return a.carriedBy(1) == byConnection && b.carriedBy(0) == byConnection
	})
	until(t, "all messages have arrived", nodes, arrived(nodes))
	round := func() {
		for !a.send(1) {
			a.poll()
		}
		for b.got[0] != a.sent[1] {
			b.poll()
		}
		for !b.send(0) {
			b.poll()
		}
		for a.got[1] != b.sent[0] {
			a.poll()
		}
	}
	for range 300 {
		round()
	}
	if got := testing.AllocsPerRun(500, round); got != 0 && !race.Enabled {
		t.Errorf("a round trip over a connection makes %v allocations; it should make none", got)
	}
	if a.carriedBy(1) != byConnection {
		t.Error("the peer was moved away meanwhile")
	}
}

// TestIdlePeersAreSmall measures the memory per idle peer without that of the devices
// below.
func TestIdlePeersAreSmall(t *testing.T) {
	d := openTest(t, Config{})
	const peers = 10000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range peers {
		d.peer(rdma.PeerID(i)).controlAddr = rdma.Addr(strings.Clone("127.0.0.1:65535/ffff/0123456789ab"))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int64(after.HeapAlloc-before.HeapAlloc) / peers
	if t.Logf("%d bytes per peer", each); each > peerStateBytes {
		t.Errorf("an idle peer takes %d bytes; Count reports %d", each, peerStateBytes)
	}
	runtime.KeepAlive(d)
}
