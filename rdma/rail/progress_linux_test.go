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

// The progress thread: a peer that calls nothing is written to and read from over all rails, and
// what its last Poll has shown it stays as it is.

const testTimeout = 30 * time.Second

// stop is a device of two rails with a queue pair, as a program has it.
type stop struct {
	*Device
	t  *testing.T
	cq rdma.CQ
	qp rdma.QP
}

func newStops(t *testing.T) (a, b *stop, toB, toA rdma.PeerID) {
	t.Helper()
	var list [2]*stop
	for i, d := range openDatagrams(t, 2) {
		s := &stop{Device: d.(*Device), t: t}
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

func (s *stop) post(wr rdma.SendWR) {
	s.t.Helper()
	if n, err := s.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
		s.t.Fatalf("post a %v: %v", wr.Op, err)
	}
}

// next polls until something completes.
func (s *stop) next() rdma.Completion {
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

func (s *stop) do(wr rdma.SendWR) {
	s.t.Helper()
	s.post(wr)
	if c := s.next(); c.Op != wr.Op || c.Status != rdma.StatusOK {
		s.t.Fatalf("the %v ends as %+v", wr.Op, c)
	}
}

func TestReachesAPeerThatComputes(t *testing.T) {
	a, b, toB, toA := newStops(t)
	if a.Attr().RemoteCPU {
		t.Fatal("the device says that peers must poll")
	}
	target := make([]byte, 1<<20)
	mr, err := b.Register(target, rdma.RemoteRead|rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	a.do(rdma.SendWR{Op: rdma.OpSend, Peer: toB, Body: rdma.MemOf([]byte("look at this"))})
	shown := b.next()
	if shown.Op != rdma.OpRecv {
		t.Fatalf("%+v comes", shown)
	}
	// b computes from here on: nobody calls it. It still looks at what it was shown.
	source, back := make([]byte, len(target)), make([]byte, len(target))
	fill(source, 3)
	for range 8 { // more pieces than a rail lends
		a.do(rdma.SendWR{Op: rdma.OpWrite, Peer: toB, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey})
		a.do(rdma.SendWR{Op: rdma.OpRead, Peer: toB, Body: rdma.MemOf(back), Remote: mr.Base, RKey: mr.RKey})
	}
	if !bytes.Equal(back, source) {
		t.Error("what was written is not what is read")
	}
	const messages = 100
	for i := range messages {
		wr := rdma.SendWR{Op: rdma.OpSend, Peer: toB, HeadLen: 8}
		binary.LittleEndian.PutUint64(wr.Head[:], uint64(i))
		a.do(wr)
	}
	fill(source, 4)
	a.do(rdma.SendWR{Op: rdma.OpWrite, Peer: toB, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey}) // behind messages that nobody takes
	if text := string(shown.Data.Bytes()); text != "look at this" {
		t.Errorf("what b was shown has become %q while it computed", text)
	}
	for i := range messages {
		if c := b.next(); c.Op != rdma.OpRecv || c.Peer != toA || binary.LittleEndian.Uint64(c.Data.Bytes()) != uint64(i) {
			t.Fatalf("%+v comes where message %d should", c, i)
		}
	}
	if !bytes.Equal(target, source) {
		t.Error("the peer's memory is not what was written")
	}
}

// TestWritesGoOnWhileBothCompute: what does not fit into the windows goes without the
// program that posted it.
func TestWritesGoOnWhileBothCompute(t *testing.T) {
	a, b, toB, _ := newStops(t)
	source, target := make([]byte, 16<<20), make([]byte, 16<<20)
	fill(source, 5)
	mr, err := b.Register(target, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	a.post(rdma.SendWR{ID: 9, Op: rdma.OpWrite, Peer: toB, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey})
	pair := a.qp.(*pair)
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		a.mu.Lock()
		pending := pair.pending // Pending would count as a call
		a.mu.Unlock()
		if pending == 0 {
			break
		}
		if time.Since(start) > testTimeout {
			t.Fatal("the Write does not end while its sender computes")
		}
	}
	if c := a.next(); c.ID != 9 || c.Status != rdma.StatusOK {
		t.Errorf("the Write ends as %+v", c)
	}
	b.mu.Lock() // what the progress thread wrote is ours after it
	defer b.mu.Unlock()
	if !bytes.Equal(target, source) {
		t.Error("the peer's memory is not what was written")
	}
}

// TestNoThread: without the thread nothing moves until the peer polls.
func TestNoThread(t *testing.T) {
	d, err := Open(Config{Rails: []Rail{{Name: "alone", Device: openDatagram(t, 0)}}, NoThread: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !d.Attr().RemoteCPU {
		t.Error("the device says that peers need not poll")
	}
	if cq, err := d.NewCQ(0); err != nil {
		t.Error(err)
	} else if _, err := d.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: cq, RecvCQ: cq}); err != nil || d.progressThread.started {
		t.Errorf("a goroutine attends to the rails: %v", err)
	}
}

// TestAttendantSleeps: when all that has come waits for the program, there is nothing to do.
func TestAttendantSleeps(t *testing.T) {
	a, _, toB, _ := newStops(t)
	for range 3 * batchSize {
		a.do(rdma.SendWR{Op: rdma.OpSend, Peer: toB, HeadLen: 8})
	}
	time.Sleep(20 * time.Millisecond) // a is away from here on, as b is all the time
	var before, after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	const pause = 500 * time.Millisecond
	time.Sleep(pause)
	if err := unix.Getrusage(unix.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	used := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	if used > pause/4 {
		t.Errorf("two progress threads with nothing to do take %v in %v", used, pause)
	}
}
