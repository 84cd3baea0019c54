package rail

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// The progress thread: a peer that makes no calls is written to and read from over all
// rails, and what its last Poll has lent stays unchanged.

const testTimeout = 30 * time.Second

// waitUntil polls cond until it holds. It is for progress threads, other processes and the
// kernel, which signal nothing that a test could wait for.
func waitUntil(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", testTimeout, what)
		}
	}
}

// testNode is a device of two rails with a queue pair.
type testNode struct {
	*Device
	t  *testing.T
	cq rdma.CQ
	qp rdma.QP
}

func newTestNodes(t *testing.T) (a, b *testNode, toB, toA rdma.PeerID) {
	t.Helper()
	var list [2]*testNode
	for i, d := range openDatagrams(t, 2) {
		s := &testNode{Device: d.(*Device), t: t}
		var err error
		if s.cq, err = d.NewCQ(0); err != nil {
			t.Fatal(err)
		}
		srq, err := d.NewSRQ(rdma.SRQConfig{Lend: true})
		if err != nil {
			t.Fatal(err)
		}
		if s.qp, err = d.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: s.cq, RecvCQ: s.cq, SRQ: srq}); err != nil {
			t.Fatal(err)
		}
		list[i] = s
	}
	a, b = list[0], list[1]
	var errA, errB error
	toB, errA = a.Resolve(b.qp.Addr())
	toA, errB = b.Resolve(a.qp.Addr())
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	return a, b, toB, toA
}

func (s *testNode) post(wr rdma.SendWR) {
	s.t.Helper()
	if n, err := s.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
		s.t.Fatalf("post a %v: %v", wr.Op, err)
	}
}

// next polls until something completes.
func (s *testNode) next() rdma.Completion {
	s.t.Helper()
	var out [1]rdma.Completion
	for end := time.Now().Add(testTimeout); time.Now().Before(end); {
		if s.cq.Poll(out[:]) == 1 {
			return out[0]
		}
		if err := s.cq.Wait(5 * time.Millisecond); err != nil {
			s.t.Fatal(err)
		}
	}
	s.t.Fatalf("nothing completes for %v", testTimeout)
	return rdma.Completion{}
}

func (s *testNode) do(wr rdma.SendWR) {
	s.t.Helper()
	s.post(wr)
	if c := s.next(); c.Op != wr.Op || c.Status != rdma.StatusOK {
		s.t.Fatalf("the %v completes as %+v", wr.Op, c)
	}
}

func TestBackgroundAccess(t *testing.T) {
	a, b, toB, toA := newTestNodes(t)
	if a.Attr().RemoteCPU {
		t.Fatal("Attr.RemoteCPU is set although there is a progress thread")
	}
	target := make([]byte, 1<<20)
	mr, err := b.Register(target, rdma.RemoteRead|rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	a.do(rdma.SendWR{Op: rdma.OpSend, Peer: toB, Body: rdma.MemOf([]byte("look at this"))})
	shown := b.next()
	if shown.Op != rdma.OpRecv {
		t.Fatalf("got completion %+v", shown)
	}
	// b computes from here on: it makes no call. It still uses what its Poll lent.
	source, back := make([]byte, len(target)), make([]byte, len(target))
	fill(source, 3)
	for range 8 { // more pieces than a rail lends
		a.do(rdma.SendWR{Op: rdma.OpWrite, Peer: toB, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey})
		a.do(rdma.SendWR{Op: rdma.OpRead, Peer: toB, Body: rdma.MemOf(back), Remote: mr.Base, RKey: mr.RKey})
	}
	if !bytes.Equal(back, source) {
		t.Error("the bytes read differ from those written")
	}
	const messages = 100
	for i := range messages {
		wr := rdma.SendWR{Op: rdma.OpSend, Peer: toB, HeadLen: 8}
		binary.LittleEndian.PutUint64(wr.Head[:], uint64(i))
		a.do(wr)
	}
	fill(source, 4)
	a.do(rdma.SendWR{Op: rdma.OpWrite, Peer: toB, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey}) // behind messages that b does not poll
	if text := string(shown.Data.Bytes()); text != "look at this" {
		t.Errorf("lent memory has changed to %q while b computed", text)
	}
	for i := range messages {
		if c := b.next(); c.Op != rdma.OpRecv || c.Peer != toA || binary.LittleEndian.Uint64(c.Data.Bytes()) != uint64(i) {
			t.Fatalf("got %+v, want message %d", c, i)
		}
	}
	if !bytes.Equal(target, source) {
		t.Error("the peer's memory differs from what was written")
	}
}

// TestBackgroundWrite checks that pieces beyond the windows are sent while both sides
// compute.
func TestBackgroundWrite(t *testing.T) {
	a, b, toB, _ := newTestNodes(t)
	source, target := make([]byte, 16<<20), make([]byte, 16<<20)
	fill(source, 5)
	mr, err := b.Register(target, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	a.post(rdma.SendWR{ID: 9, Op: rdma.OpWrite, Peer: toB, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey})
	pair := a.qp.(*pair)
	waitUntil(t, "the Write completes while its sender computes", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return pair.pending == 0
	})
	if c := a.next(); c.ID != 9 || c.Status != rdma.StatusOK {
		t.Errorf("the Write completes as %+v", c)
	}
	b.mu.Lock() // synchronizes with the progress thread's writes
	defer b.mu.Unlock()
	if !bytes.Equal(target, source) {
		t.Error("the peer's memory differs from what was written")
	}
}

// TestNoThread checks that NoThread starts no progress thread.
func TestNoThread(t *testing.T) {
	d, err := Open(Config{Rails: []Rail{{Name: "alone", Device: openDatagram(t, 0)}}, NoThread: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !d.Attr().RemoteCPU {
		t.Error("Attr.RemoteCPU is not set without a progress thread")
	}
	if cq, err := d.NewCQ(0); err != nil {
		t.Error(err)
	} else if _, err := d.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: cq, RecvCQ: cq}); err != nil || d.soft.Thread.Started() {
		t.Errorf("a progress thread is running: %v", err)
	}
}

// TestProgressThreadSleeps checks that the progress thread is idle when everything
// received waits for the application.
func TestProgressThreadSleeps(t *testing.T) {
	a, _, toB, _ := newTestNodes(t)
	for range 3 * batchSize {
		a.do(rdma.SendWR{Op: rdma.OpSend, Peer: toB, HeadLen: 8})
	}
	time.Sleep(20 * time.Millisecond) // real time, until a counts as away, as b does
	var before, after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	const pause = 500 * time.Millisecond
	time.Sleep(pause) // CPU time is measured over real time
	if err := unix.Getrusage(unix.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	used := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	if used > pause/4 {
		t.Errorf("two idle progress threads use %v of CPU time in %v", used, pause)
	}
}
