package soft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/guard"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// Two nodes with two paths each: progress while they compute, cut paths, counters.

func newPathNodes(t *testing.T, c Config) (a, b *testNode, toB, toA rdma.PeerID) {
	t.Helper()
	of := func(name uint32) *testNode {
		one := pathsConfig(name, 2)
		one.PeerTimeout = c.PeerTimeout
		return newTestNode(t, one)
	}
	a, b = of(100), of(101)
	return a, b, a.resolve(t, b), b.resolve(t, a)
}

// cutPaths drops what two nodes send on the paths in a mask, and returns the mask.
func cutPaths(nodes ...*testNode) *atomic.Uint32 {
	cut, dropped := new(atomic.Uint32), new(atomic.Int64)
	for _, s := range nodes {
		s.mu.Lock()
		s.outgoing.disturb = byPacket(s, dropOn(func(path int) bool { return cut.Load()>>path&1 != 0 }, dropped))
		s.mu.Unlock()
	}
	return cut
}

// sleepNext waits until something completes.
func (s *testNode) sleepNext(t *testing.T) rdma.Completion {
	t.Helper()
	var out [1]rdma.Completion
	for end := time.Now().Add(testTimeout); time.Now().Before(end); {
		if s.cq.Poll(out[:]) == 1 {
			return out[0]
		}
		if err := s.cq.Wait(5 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("nothing completes for %v", testTimeout)
	return rdma.Completion{}
}

func fillBytes(b []byte, seed byte) {
	for i := range b {
		b[i] = seed + byte(i*7)
	}
}

// TestBackgroundAccessOnPaths: a peer that makes no calls is written to and read from over
// both paths, and what its last Poll has lent stays unchanged.
func TestBackgroundAccessOnPaths(t *testing.T) {
	a, b, toB, toA := newPathNodes(t, Config{})
	if a.Attr().RemoteCPU {
		t.Fatal("Attr.RemoteCPU is set although there is a progress thread")
	}
	target := make([]byte, 1<<20)
	mr, err := b.Register(target, rdma.RemoteRead|rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	a.do(t, rdma.SendWR{Op: rdma.OpSend, Peer: toB, Body: rdma.MemOf([]byte("look at this"))})
	shown := b.sleepNext(t)
	if shown.Op != rdma.OpRecv {
		t.Fatalf("got completion %+v", shown)
	}
	// b computes from here on: it makes no call. It still uses what its Poll lent.
	source, back := make([]byte, len(target)), make([]byte, len(target))
	fillBytes(source, 3)
	for range 8 {
		a.do(t, rdma.SendWR{Op: rdma.OpWrite, Peer: toB, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey})
		a.do(t, rdma.SendWR{Op: rdma.OpRead, Peer: toB, Body: rdma.MemOf(back), Remote: mr.Base, RKey: mr.RKey})
	}
	if !bytes.Equal(back, source) {
		t.Error("the bytes read differ from those written")
	}
	const messages = 100
	for i := range messages {
		wr := rdma.SendWR{Op: rdma.OpSend, Peer: toB, HeadLen: 8}
		binary.LittleEndian.PutUint64(wr.Head[:], uint64(i))
		a.do(t, wr)
	}
	fillBytes(source, 4)
	a.do(t, rdma.SendWR{Op: rdma.OpWrite, Peer: toB, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey}) // behind messages that b does not poll
	if text := string(shown.Data.Bytes()); text != "look at this" {
		t.Errorf("lent memory has changed to %q while b computed", text)
	}
	for i := range messages {
		if c := b.sleepNext(t); c.Op != rdma.OpRecv || c.Peer != toA || binary.LittleEndian.Uint64(c.Data.Bytes()) != uint64(i) {
			t.Fatalf("got %+v, want message %d", c, i)
		}
	}
	if !bytes.Equal(target, source) {
		t.Error("the peer's memory differs from what was written")
	}
}

// TestBackgroundWriteOnPaths checks that what is beyond the windows is sent while both
// sides compute.
func TestBackgroundWriteOnPaths(t *testing.T) {
	a, b, toB, _ := newPathNodes(t, Config{})
	source, target := make([]byte, 16<<20), make([]byte, 16<<20)
	fillBytes(source, 5)
	mr, err := b.Register(target, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	wr := rdma.SendWR{ID: 9, Op: rdma.OpWrite, Peer: toB, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey}
	if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
		t.Fatal(err)
	}
	waitUntil(t, "the Write completes while its sender computes", func() bool { return !a.outstanding() })
	if c := a.sleepNext(t); c.ID != 9 || c.Status != rdma.StatusOK {
		t.Errorf("the Write completes as %+v", c)
	}
	b.mu.Lock() // synchronizes with the progress thread's writes
	defer b.mu.Unlock()
	if !bytes.Equal(target, source) {
		t.Error("the peer's memory differs from what was written")
	}
}

// TestProgressThreadSleepsOnPaths checks that the progress thread is idle when everything
// received waits for the application.
func TestProgressThreadSleepsOnPaths(t *testing.T) {
	a, _, toB, _ := newPathNodes(t, Config{})
	for range 3 * batchSize {
		a.do(t, rdma.SendWR{Op: rdma.OpSend, Peer: toB, HeadLen: 8})
	}
	time.Sleep(20 * time.Millisecond) // real time, until a counts as away, as b does
	// A pause of a virtual machine is charged to the process that was running, but it does
	// not recur, so one interval out of three is enough.
	const pause, attempts = 500 * time.Millisecond, 3
	var all []time.Duration
	for range attempts {
		before, _ := cputime.Used()
		time.Sleep(pause) // CPU time is measured over real time
		after, _ := cputime.Used()
		if after-before <= pause/4 {
			return
		}
		all = append(all, after-before)
	}
	t.Errorf("two idle progress threads use %v of CPU time in intervals of %v", all, pause)
}

// TestKeyGuessingOnPaths: strikes count for a peer, on whichever path a guess arrives.
func TestKeyGuessingOnPaths(t *testing.T) {
	rdmatest.RunGuesses(t, guard.MaxStrikes, func(t testing.TB, n int) (list []rdma.Device) {
		for i := range n {
			list = append(list, openPaths(t, uint32(i), 2))
		}
		return list
	})
}

func TestCountersAndPaths(t *testing.T) {
	a, b, toB, _ := newPathNodes(t, Config{})
	cut := cutPaths(a, b)
	target := make([]byte, 1<<20)
	mr, err := b.Register(target, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	wr := rdma.SendWR{Op: rdma.OpWrite, Peer: toB, Body: rdma.MemOf(make([]byte, len(target))), Remote: mr.Base, RKey: mr.RKey}
	if _, err := a.Register(make([]byte, 1), 0); err != nil { // for memory.tables
		t.Fatal(err)
	}
	good := func() bool { return a.Paths(toB) == "peer 101 over rail0 (good), rail1 (good)" }
	waitUntil(t, "both paths have delivered", func() bool { a.do(t, wr); return good() })
	cut.Store(1 << 1)
	waitUntil(t, "the cut path is left", func() bool { a.do(t, wr); return strings.HasSuffix(a.Paths(toB), "rail1 (left)") })
	got := countsOf(a.Device)
	for _, name := range []rdma.Counter{"rail-bytes.rail0", "rail-bytes.rail1", "rails.left", "rails.again", rdma.PeersKnown, rdma.MemoryPeers, rdma.MemorySend} {
		if got[name] == 0 {
			t.Errorf("%s is 0", name)
		}
	}
	if countsOf(b.Device)[rdma.MemoryTables] == 0 {
		t.Errorf("%s of the target is 0", rdma.MemoryTables)
	}
	if got[rdma.Sockets] != 2 {
		t.Errorf("there are %d sockets", got[rdma.Sockets])
	}
	cut.Store(0)
	waitUntil(t, "the path is used again", func() bool { a.do(t, wr); return good() })
	if got := countsOf(a.Device); got["rails.back"] == 0 {
		t.Error("rails.back is 0")
	}
	if counts := a.Counts(); len(counts) != 2 || counts[1].Left == 0 || counts[1].Back == 0 || counts[1].Again == 0 {
		t.Errorf("Counts returns %+v", counts)
	}
	if line := a.Paths(99); line != "no peer has the handle 99" {
		t.Errorf("Paths of an unknown peer returns %q", line)
	}
}

// TestLongCut cuts one of two paths for longer than the peer timeout. The peer is reached
// over the other, and the path is probed until it delivers.
func TestLongCut(t *testing.T) {
	const timeout = time.Second
	for path := range 2 {
		a, b, toB, _ := newPathNodes(t, Config{PeerTimeout: timeout})
		cut := cutPaths(a, b)
		wr := rdma.SendWR{Op: rdma.OpSend, Peer: toB, Body: rdma.MemOf(make([]byte, 40_000))} // for both paths
		exchange := func() {
			t.Helper()
			if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
				t.Fatal(err)
			}
			var out [1]rdma.Completion
			for done := 0; done < 2; { // it has arrived, and it is complete
				for _, s := range []*testNode{a, b} {
					if s.cq.Poll(out[:]) == 0 {
						continue
					}
					if done++; out[0].Status != rdma.StatusOK {
						t.Fatalf("path %d: %+v", path, out[0])
					}
				}
			}
		}
		waitUntil(t, "both paths have delivered", func() bool {
			exchange()
			return strings.Count(a.Paths(toB), "(good)") == 2
		})
		cut.Store(1 << path)
		for end := time.Now().Add(2 * timeout); time.Now().Before(end); {
			exchange()
		}
		if got := a.Paths(toB); !strings.Contains(got, fmt.Sprintf("rail%d (left)", path)) {
			t.Errorf("with path %d cut: %s", path, got)
		}
		cut.Store(0)
		waitUntil(t, "the path is used again", func() bool {
			exchange()
			return strings.Contains(a.Paths(toB), fmt.Sprintf("rail%d (good)", path))
		})
	}
}

// TestPeerTimeoutOnPaths: no path delivers. A pause shorter than the timeout has no effect.
// After the timeout everything completes once, as PeerGone, and Explain says why.
func TestPeerTimeoutOnPaths(t *testing.T) {
	const timeout = 2 * time.Second
	a, b, toB, _ := newPathNodes(t, Config{PeerTimeout: timeout})
	cut := cutPaths(a, b)
	send := func(id uint64) {
		t.Helper()
		wr := rdma.SendWR{ID: id, Op: rdma.OpSend, Peer: toB, Body: rdma.MemOf(make([]byte, 20_000))}
		if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
			t.Fatal(err)
		}
	}
	for id := range uint64(20) {
		send(id)
	}
	for range 20 {
		if c := a.sleepNext(t); c.Status != rdma.StatusOK {
			t.Fatalf("%+v", c)
		}
	}
	cut.Store(3)
	send(20)
	time.Sleep(timeout / 4) // a pause in real time
	cut.Store(0)
	if c := a.sleepNext(t); c.ID != 20 || c.Status != rdma.StatusOK {
		t.Fatalf("after a pause: %+v", c)
	}
	cut.Store(3)
	begin := time.Now()
	ended, gone := map[uint64]int{}, 0
	for id := uint64(21); id < 31; id++ {
		send(id)
	}
	for len(ended) < 10 || gone == 0 {
		c := a.sleepNext(t)
		if c.Status != rdma.StatusPeerGone {
			t.Fatalf("%+v", c)
		}
		if c.Op == rdma.OpDisconnected {
			gone++
		} else {
			ended[c.ID]++
		}
	}
	if took := time.Since(begin); took < timeout*9/10 || took > timeout+time.Second {
		t.Errorf("the peer is declared gone after %v of silence, the timeout is %v", took, timeout)
	}
	if len(ended) != 10 || gone != 1 {
		t.Errorf("%d reports, and the requests complete as often as %v", gone, ended)
	}
	silence := new(rdma.SilenceError)
	if err := a.Explain(toB); !errors.As(err, &silence) || silence.For < timeout*9/10 {
		t.Errorf("Explain returns %v", err)
	}
	if a.outstanding() {
		t.Error("something is pending")
	}
}
