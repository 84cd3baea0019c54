package soft

import (
	"bytes"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// testTimeout is generous for a loaded machine; nothing here takes so long.
const testTimeout = 20 * time.Second

// newReachable returns two nodes and a region of the second that the first may access.
func newReachable(t *testing.T, c Config, mem []byte) (a, b *testNode, to rdma.PeerID, mr rdma.MR) {
	t.Helper()
	a, b = newTestNode(t, c), newTestNode(t, c)
	mr, err := b.Register(mem, rdma.RemoteWrite|rdma.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	return a, b, a.resolve(t, b), mr
}

// waitUntil polls cond until it holds. The progress threads of real sockets signal nothing
// that a test could wait for.
func waitUntil(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", testTimeout, what)
		}
	}
}

// do posts a request and waits for its completion.
func (s *testNode) do(t *testing.T, wr rdma.SendWR) {
	t.Helper()
	if n, err := s.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
		t.Fatalf("post a %v: %v", wr.Op, err)
	}
	c, ok := s.poll(testTimeout)
	if !ok || c.Status != rdma.StatusOK || c.Op != wr.Op {
		t.Fatalf("the %v completes with %+v, %v", wr.Op, c, ok)
	}
}

// TestBackgroundAccess writes to and reads from a peer that makes no calls, with
// datagrams of both sizes, and with losses in both directions.
func TestBackgroundAccess(t *testing.T) {
	for _, v := range []struct {
		name  string
		c     Config
		share float64
	}{{"loopback", Config{}, 0}, {"ethernet", Config{Datagram: ethernetDatagram}, 0}, {"loss", Config{}, 0.05}} {
		t.Run(v.name, func(t *testing.T) {
			target := make([]byte, 1<<20)
			a, b, to, mr := newReachable(t, v.c, target)
			if a.Attr().RemoteCPU {
				t.Error("Attr.RemoteCPU is set although there is a progress thread")
			}
			if v.share > 0 {
				for i, s := range []*testNode{a, b} {
					s.mu.Lock()
					s.outgoing.disturb = byPacket(s, impair(v.share, uint64(i)))
					s.mu.Unlock()
				}
			}
			source := bytes.Repeat([]byte("bytes "), len(target)/6+1)[:len(target)]
			back := make([]byte, len(target))
			// b computes from here on: it makes no call.
			a.do(t, rdma.SendWR{Op: rdma.OpWrite, Peer: to, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey})
			a.do(t, rdma.SendWR{Op: rdma.OpRead, Peer: to, Body: rdma.MemOf(back), Remote: mr.Base, RKey: mr.RKey})
			if !bytes.Equal(back, source) {
				t.Error("the bytes read differ from those written")
			}
			b.mu.Lock() // synchronizes with the progress thread's writes
			defer b.mu.Unlock()
			if !bytes.Equal(target, source) {
				t.Error("the peer's memory differs from what was written")
			}
		})
	}
}

// TestBackgroundSend checks that segments beyond the first window, and lost ones, are
// sent while the sender computes.
func TestBackgroundSend(t *testing.T) {
	target := make([]byte, 1<<20)
	a, b, to, mr := newReachable(t, Config{Datagram: ethernetDatagram}, target)
	source := bytes.Repeat([]byte{0xA5}, len(target))
	wr := rdma.SendWR{ID: 9, Op: rdma.OpWrite, Peer: to, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey}
	if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
		t.Fatal(err)
	}
	// Both compute from here on.
	waitUntil(t, "the write completes while its sender computes", func() bool { return !a.outstanding() })
	if c, ok := a.poll(testTimeout); !ok || c.ID != 9 || c.Status != rdma.StatusOK {
		t.Errorf("got completion %+v, %v", c, ok)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !bytes.Equal(target, source) {
		t.Error("the peer's memory differs from what was written")
	}
}

// TestNoThread checks that without the progress thread nothing happens until the peer
// polls.
func TestNoThread(t *testing.T) {
	a, b, to, mr := newReachable(t, Config{NoThread: true}, make([]byte, 64))
	if !a.Attr().RemoteCPU {
		t.Error("Attr.RemoteCPU is not set without a progress thread")
	}
	wr := rdma.SendWR{Op: rdma.OpRead, Peer: to, Body: rdma.MemOf(make([]byte, 64)), Remote: mr.Base, RKey: mr.RKey}
	if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
		t.Fatal(err)
	}
	if c, ok := a.poll(20 * time.Millisecond); ok {
		t.Fatalf("a peer without progress thread responds without polling: %+v", c)
	}
	b.poll(time.Millisecond)
	if c, ok := a.poll(testTimeout); !ok || c.Status != rdma.StatusOK {
		t.Errorf("the read completes with %+v, %v", c, ok)
	}
}

// TestFile checks that File reports datagrams and Wake, and that Sleep accounts for
// timers.
func TestFile(t *testing.T) {
	a, b := newTestNode(t, Config{}), newTestNode(t, Config{})
	to := a.resolve(t, b)
	cq := b.cq
	readable := func(limit time.Duration) bool {
		t.Helper()
		fds := []unix.PollFd{{Fd: int32(cq.File()), Events: unix.POLLIN}}
		for start := time.Now(); ; {
			n, err := unix.Poll(fds, int(limit/time.Millisecond))
			if err == nil || time.Since(start) > limit {
				return n > 0
			}
		}
	}
	if got := cq.Arm(rdma.NotifyAny, time.Hour); got != time.Hour {
		t.Errorf("with nothing to do Sleep returns %v", got)
	}
	if readable(0) {
		t.Error("the file is readable before any event")
	}
	cq.Wake()
	if !readable(testTimeout) {
		t.Error("Wake does not make the file readable")
	}
	if cq.Disarm(); readable(0) {
		t.Error("the file is readable after Awake")
	}
	cq.Arm(rdma.NotifyAny, time.Hour)
	a.send(t, to, "good morning")
	if !readable(testTimeout) {
		t.Error("a datagram does not make the file readable")
	}
	cq.Disarm()
	if c, ok := b.poll(testTimeout); !ok || string(c.Data.Bytes()) != "good morning" {
		t.Errorf("received %q", c.Data.Bytes())
	}
	if err := a.Close(); err != nil { // so that nothing replies
		t.Fatal(err)
	}
	b.send(t, b.resolve(t, newTestNode(t, Config{NoThread: true})), "to a peer that does not poll")
	if got := cq.Arm(rdma.NotifyAny, time.Hour); got > time.Second {
		t.Errorf("a message is not acked, and Sleep returns %v", got)
	}
	cq.Disarm()
}

// TestSendEndsSleep checks that a timer started during a sleep ends it.
func TestSendEndsSleep(t *testing.T) {
	a, b := newTestNode(t, Config{}), newTestNode(t, Config{NoThread: true})
	to := a.resolve(t, b)
	cq := a.cq
	cq.Arm(rdma.NotifyAny, time.Hour)
	a.send(t, to, "while you sleep")
	fds := []unix.PollFd{{Fd: int32(cq.File()), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, int(testTimeout/time.Millisecond)); n != 1 {
		t.Errorf("the new timer does not wake the sleeper: %v", err)
	}
	cq.Disarm()
}

// TestCloseLeavesNoDescriptor counts descriptors right after Close returns.
func TestCloseLeavesNoDescriptor(t *testing.T) {
	count := func() int {
		t.Helper()
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	count() // the first call may open the poller of package os
	before := count()
	for range 50 {
		s := newTestNode(t, Config{})
		if !s.soft.Thread.Started() {
			t.Fatal("there is no progress thread")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if now := count(); now != before {
			t.Fatalf("%d descriptors are open after Close, %d were before Open", now, before)
		}
	}
}
