package dgram

import (
	"bytes"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// testTimeout is for a loaded machine; nothing here takes so long.
const testTimeout = 20 * time.Second

// reached makes two nodes and a region of the second that the first may use.
func reached(t *testing.T, c Config, mem []byte) (a, b *testNode, to rdma.PeerID, mr rdma.MR) {
	t.Helper()
	a, b = newTestNode(t, c), newTestNode(t, c)
	mr, err := b.Register(mem, rdma.RemoteWrite|rdma.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	return a, b, a.resolve(t, b), mr
}

// do posts a request and waits for its end.
func (s *testNode) do(t *testing.T, wr rdma.SendWR) {
	t.Helper()
	if n, err := s.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
		t.Fatalf("post a %v: %v", wr.Op, err)
	}
	c, ok := s.poll(testTimeout)
	if !ok || c.Status != rdma.StatusOK || c.Op != wr.Op {
		t.Fatalf("the %v ends with %+v, %v", wr.Op, c, ok)
	}
}

// TestReachesAPeerThatComputes: a peer that calls nothing is written to and read from, with
// datagrams of each size and with some of them lost in both directions.
func TestReachesAPeerThatComputes(t *testing.T) {
	for _, v := range []struct {
		name  string
		c     Config
		share float64
	}{{"loopback", Config{}, 0}, {"ethernet", Config{Datagram: ethernetDatagram}, 0}, {"loss", Config{}, 0.05}} {
		t.Run(v.name, func(t *testing.T) {
			target := make([]byte, 1<<20)
			a, b, to, mr := reached(t, v.c, target)
			if a.Attr().RemoteCPU {
				t.Error("the device says that peers must poll")
			}
			if v.share > 0 {
				for i, s := range []*testNode{a, b} {
					s.mu.Lock()
					s.disturb = impair(v.share, uint64(i))
					s.mu.Unlock()
				}
			}
			source := bytes.Repeat([]byte("bytes "), len(target)/6+1)[:len(target)]
			back := make([]byte, len(target))
			// b computes from here on: nobody calls it.
			a.do(t, rdma.SendWR{Op: rdma.OpWrite, Peer: to, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey})
			a.do(t, rdma.SendWR{Op: rdma.OpRead, Peer: to, Body: rdma.MemOf(back), Remote: mr.Base, RKey: mr.RKey})
			if !bytes.Equal(back, source) {
				t.Error("what was written is not what is read")
			}
			b.mu.Lock() // what the progress thread wrote is ours after it
			defer b.mu.Unlock()
			if !bytes.Equal(target, source) {
				t.Error("the peer's memory is not what was written")
			}
		})
	}
}

// TestSendsGoOnWhileTheSenderComputes: what does not fit into the first window, and what is
// lost, goes without the sender.
func TestSendsGoOnWhileTheSenderComputes(t *testing.T) {
	target := make([]byte, 1<<20)
	a, b, to, mr := reached(t, Config{Datagram: ethernetDatagram}, target)
	source := bytes.Repeat([]byte{0xA5}, len(target))
	wr := rdma.SendWR{ID: 9, Op: rdma.OpWrite, Peer: to, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey}
	if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
		t.Fatal(err)
	}
	// Both compute from here on.
	for start := time.Now(); a.outstanding(); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > testTimeout {
			t.Fatal("the write does not end while its sender computes")
		}
	}
	if c, ok := a.poll(testTimeout); !ok || c.ID != 9 || c.Status != rdma.StatusOK {
		t.Errorf("the completion is %+v, %v", c, ok)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !bytes.Equal(target, source) {
		t.Error("the peer's memory is not what was written")
	}
}

// TestNoThread: without the thread nothing moves until the peer polls.
func TestNoThread(t *testing.T) {
	a, b, to, mr := reached(t, Config{NoThread: true}, make([]byte, 64))
	if !a.Attr().RemoteCPU {
		t.Error("the device says that peers need not poll")
	}
	wr := rdma.SendWR{Op: rdma.OpRead, Peer: to, Body: rdma.MemOf(make([]byte, 64)), Remote: mr.Base, RKey: mr.RKey}
	if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
		t.Fatal(err)
	}
	if c, ok := a.poll(20 * time.Millisecond); ok {
		t.Fatalf("a peer that has no thread and does not poll answers: %+v", c)
	}
	b.poll(time.Millisecond)
	if c, ok := a.poll(testTimeout); !ok || c.Status != rdma.StatusOK {
		t.Errorf("the read ends with %+v, %v", c, ok)
	}
}

// TestSleepsOnAFile: File tells of datagrams and of Wake, and Sleep of timers.
func TestSleepsOnAFile(t *testing.T) {
	a, b := newTestNode(t, Config{}), newTestNode(t, Config{})
	to := a.resolve(t, b)
	cq := b.cq.(rdma.FileCQ)
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
	if got := cq.Sleep(time.Hour); got != time.Hour {
		t.Errorf("with nothing to do the sleep may last %v", got)
	}
	if readable(0) {
		t.Error("the file is readable although nothing has happened")
	}
	cq.Wake()
	if !readable(testTimeout) {
		t.Error("Wake does not make the file readable")
	}
	if cq.Awake(); readable(0) {
		t.Error("the file is readable after Awake")
	}
	cq.Sleep(time.Hour)
	a.send(t, to, "good morning")
	if !readable(testTimeout) {
		t.Error("a datagram does not make the file readable")
	}
	cq.Awake()
	if c, ok := b.poll(testTimeout); !ok || string(c.Data.Bytes()) != "good morning" {
		t.Errorf("%q comes", c.Data.Bytes())
	}
	if err := a.Close(); err != nil { // so that nothing answers
		t.Fatal(err)
	}
	b.send(t, b.resolve(t, newTestNode(t, Config{NoThread: true})), "to one who does not listen")
	if got := cq.Sleep(time.Hour); got > time.Second {
		t.Errorf("a message is not known to have arrived, and the sleep may last %v", got)
	}
	cq.Awake()
}

// TestSendEndsASleep: a timer that begins while somebody sleeps shortens the sleep.
func TestSendEndsASleep(t *testing.T) {
	a, b := newTestNode(t, Config{}), newTestNode(t, Config{NoThread: true})
	to := a.resolve(t, b)
	cq := a.cq.(rdma.FileCQ)
	cq.Sleep(time.Hour)
	a.send(t, to, "while you sleep")
	fds := []unix.PollFd{{Fd: int32(cq.File()), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, int(testTimeout/time.Millisecond)); n != 1 {
		t.Errorf("the sleeper does not hear of the new timer: %v", err)
	}
	cq.Awake()
}

// TestCloseLeavesNoDescriptor counts at the very moment when Close returns.
func TestCloseLeavesNoDescriptor(t *testing.T) {
	count := func() int {
		t.Helper()
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	count() // the first look may open the poller of package os
	before := count()
	for range 50 {
		s := newTestNode(t, Config{})
		if !s.progressThread.started {
			t.Fatal("nobody attends to the socket")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if now := count(); now != before {
			t.Fatalf("%d descriptors are open after Close, %d were before Open", now, before)
		}
	}
}
