//go:build !muster_portable

package iwarp

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// TestRestOfSegmentEndsSleep receives the front of a long segment and sleeps: further packets
// of it do not make the device readable, its end does, and so does a short message after it.
func TestRestOfSegmentEndsSleep(t *testing.T) {
	e, peer, f := rawPeer(t)
	q := e.qp.(*queuePair)
	frame := func(msn uint32, body []byte) []byte {
		h := ddp.Header{Op: ddp.Send, Last: true, MSN: msn}
		var head [ddp.UntaggedLen]byte
		return f.append(nil, head[:h.Put(head[:])], body)
	}
	write := func(b []byte) {
		t.Helper()
		if _, err := peer.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	cq := e.cq
	arm := func() {
		t.Helper()
		pollUntil(t, "the device may sleep", func() bool { return cq.Arm(rdma.NotifyAny, time.Second) > 0 }, e)
		cq.Disarm()
	}
	readable := func(limit time.Duration) bool {
		one := []unix.PollFd{{Fd: int32(q.dev.sockets.set.FD()), Events: unix.POLLIN}}
		n, err := unix.Poll(one, int(limit/time.Millisecond))
		return err == nil && n > 0
	}

	long := frame(1, someBytes(40000))
	write(long[:10000])
	pollUntil(t, "the segment is being placed", func() bool { return q.in.direct.on && q.in.direct.got > 9000 }, e)
	arm()
	write(long[10000:20000])
	if readable(50 * time.Millisecond) {
		t.Error("a packet of a long segment ends a sleep")
	}
	write(long[20000:])
	if !readable(10 * time.Second) {
		t.Fatal("the end of a long segment does not end a sleep")
	}
	pollUntil(t, "the long message has arrived", func() bool { return len(e.got) == 1 }, e)
	arm()
	write(frame(2, someBytes(8)))
	if !readable(10 * time.Second) {
		t.Fatal("a short message after a long segment does not end a sleep")
	}
	pollUntil(t, "the short message has arrived", func() bool { return len(e.got) == 2 }, e)
}
