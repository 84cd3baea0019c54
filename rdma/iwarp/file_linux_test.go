//go:build !muster_portable

package iwarp

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// Completion queues as files that one thread sleeps on together.

// readable sleeps on a file and reports whether it became readable.
func readable(t testing.TB, fd int, limit time.Duration) bool {
	t.Helper()
	look := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(look, int(limit/time.Millisecond))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
}

// idle polls until the queue may sleep, and leaves it asleep.
func (e *end) idle() {
	e.t.Helper()
	cq := e.cq
	for deadline := time.Now().Add(20 * time.Second); ; {
		if cq.Arm(rdma.NotifyAny, time.Second) == time.Second && !readable(e.t, cq.File(), 0) {
			return
		}
		cq.Disarm()
		e.poll()
		if time.Now().After(deadline) {
			e.t.Fatal("after 20 s of polling the queue may still not sleep")
		}
	}
}

func (e *end) sendSome() {
	e.t.Helper()
	if n, err := e.qp.PostSend([]rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, HeadLen: 1}}); n != 1 || err != nil {
		e.t.Fatal(n, err)
	}
}

func TestFileReadableWhenPollHasWork(t *testing.T) {
	for _, noThread := range []bool{false, true} {
		a, b := newPair(t, Config{NoThread: noThread})
		a.sendSome() // a responder waits for the first frame
		pollUntil(t, "the connection is complete", func() bool { return len(b.got) == 1 }, a, b)
		b.got = nil
		cq := b.cq
		for _, c := range []struct {
			name string
			do   func()
		}{
			{"a message arrives", a.sendSome},
			{"Wake is called", cq.Wake},
			{"the peer ends", func() { _ = a.qp.Close() }},
		} {
			b.idle()
			if readable(t, cq.File(), 20*time.Millisecond) {
				t.Fatalf("NoThread %v: the file is readable before %s", noThread, c.name)
			}
			c.do()
			if !readable(t, cq.File(), 20*time.Second) {
				t.Fatalf("NoThread %v: %s and the file is not readable", noThread, c.name)
			}
			cq.Disarm()
			b.poll()
		}
		if len(b.got) != 1 || b.got[0].Op != rdma.OpRecv {
			t.Errorf("NoThread %v: the completions are %+v, expected one message", noThread, b.got)
		}
	}
}

// TestSleepSeesWorkBeyondSockets: input that the progress thread has processed already,
// and a completion that was not polled.
func TestSleepSeesWorkBeyondSockets(t *testing.T) {
	a, b := newPair(t, Config{})
	b.idle()
	cq := b.cq
	cq.Disarm()
	a.sendSome()
	q := b.qp.(*queuePair)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // a real socket
		q.dev.mu.Lock()
		n := b.cq.(*completionQueue).Len()
		q.dev.mu.Unlock()
		if n > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the progress thread has not received the message for 10 s")
		}
	}
	if d := cq.Arm(rdma.NotifyAny, time.Second); d != 0 {
		t.Errorf("with a message to be polled Sleep allows %v", d)
	}
	cq.Disarm()
	b.poll()
	if len(b.got) != 1 {
		t.Errorf("%d messages are polled, expected 1", len(b.got))
	}
}

// TestSleeperIsWokenByOtherPoller: a queue pair with two completion queues is driven by
// the goroutine that polls one of them, and the other may be asleep; a buffer may be
// posted while the socket is not watched for lack of one.
func TestSleeperIsWokenByOtherPoller(t *testing.T) {
	a, b := newEnd(t, Config{NoThread: true}), newEnd(t, Config{NoThread: true})
	other, err := b.dev.NewCQ(8)
	if err != nil {
		t.Fatal(err)
	}
	qp, err := b.dev.NewQP(rdma.QPConfig{Type: rdma.RC, SendCQ: other, RecvCQ: b.cq})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(join(a.qp, qp, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	pollUntil(t, "the connection is complete", func() bool {
		other.Poll(nil)
		return !a.qp.(*queuePair).out.mute && !qp.(*queuePair).out.mute
	}, a)
	cq := b.cq
	post := func() {
		if n, err := qp.PostRecv([]rdma.RecvWR{{ID: 1, Body: rdma.MemOf(make([]byte, 8))}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	starved := qp.(*queuePair)
	for _, c := range []struct {
		name          string
		before, while func()
	}{
		{"another queue is polled", post, func() {
			for deadline := time.Now().Add(20 * time.Second); b.cq.(*completionQueue).Len() == 0; {
				other.Poll(nil)
				if time.Now().After(deadline) {
					t.Fatal("polling the other queue does not receive the message")
				}
			}
		}},
		{"a buffer is posted", func() {}, func() {
			pollUntil(t, "the message waits for a buffer", func() bool { other.Poll(nil); return starved.in.starved })
			for readable(t, cq.File(), 0) {
				cq.Disarm() // the socket itself has indicated it
				cq.Arm(rdma.NotifyAny, time.Second)
			}
			post()
		}},
	} {
		a.got, b.got = nil, nil
		b.idle()
		c.before()
		a.sendSome()
		a.poll()
		c.while()
		if !readable(t, cq.File(), 20*time.Second) {
			t.Fatalf("%s and the sleeper is not woken", c.name)
		}
		cq.Disarm()
		pollUntil(t, "the message has arrived", func() bool { return len(b.got) == 1 }, a, b)
	}
}

// TestCompletionsCarryPeer checks the Peer of all kinds of completion.
func TestCompletionsCarryPeer(t *testing.T) {
	a := newEnd(t, Config{})
	var qps [2]rdma.QP
	var peers [2]*end
	for i := range qps {
		var err error
		if qps[i], err = a.dev.NewQP(rdma.QPConfig{Type: rdma.RC, SendCQ: a.cq, RecvCQ: a.cq, Peer: rdma.PeerID(40 + i)}); err != nil {
			t.Fatal(err)
		}
		peers[i] = newEnd(t, Config{})
		if err := errors.Join(join(qps[i], peers[i].qp, 20*time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, err := qps[i].PostRecv([]rdma.RecvWR{{ID: uint64(i), Body: rdma.MemOf(make([]byte, 8))}, {ID: uint64(i), Body: rdma.MemOf(make([]byte, 8))}}); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		mr, err := peers[i].dev.Register(make([]byte, 8), rdma.RemoteWrite|rdma.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		peers[i].sendSome()
		for _, op := range []rdma.Op{rdma.OpSend, rdma.OpWrite, rdma.OpRead} {
			if n, err := qps[i].PostSend([]rdma.SendWR{{ID: uint64(i), Op: op, Body: rdma.MemOf(make([]byte, 8)), Remote: mr.Base, RKey: mr.RKey}}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
	}
	pollUntil(t, "everything has completed", func() bool { return len(a.got) == 8 }, a, peers[0], peers[1])
	for i, peer := range peers { // also for failures
		_ = peer.dev.Close()
		if n, err := qps[i].PostSend([]rdma.SendWR{{ID: uint64(i), Op: rdma.OpRead, Body: rdma.MemOf(make([]byte, 8))}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	pollUntil(t, "the failures have completed", func() bool { return len(a.got) == 10 }, a)
	for _, c := range a.got {
		if c.Peer != rdma.PeerID(40+c.ID) {
			t.Errorf("a completion of queue pair %d is %+v", c.ID, c)
		}
	}
}
