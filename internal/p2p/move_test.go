package p2p

import (
	"errors"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// TestMoveIsOneWorkRequest: what is posted for a window, and how it ends.
func TestMoveIsOneWorkRequest(t *testing.T) {
	for _, c := range []struct {
		name   string
		op     rdma.Op
		status rdma.Status
		gone   bool // the link fails before the end
	}{
		{"write", rdma.OpWrite, rdma.StatusOK, false},
		{"read", rdma.OpRead, rdma.StatusOK, false},
		{"refused", rdma.OpWrite, rdma.StatusRemoteAccess, false},
		{"peer gone", rdma.OpRead, rdma.StatusOK, true},
	} {
		attr := testAttr(0)
		m := New(Config{}, newMemory(0, 1<<16))
		l := &Link{Rank: 1, Attr: &attr, Open: true}
		m.SetUp(l)
		x := m.New()
		x.Link, x.Buf, x.Owner = l, make([]byte, 100), &Waiter{}
		m.Move(x, c.op, 4096, 77)
		if len(m.Out.WR) != 1 {
			t.Fatalf("%s: %d work requests, want 1", c.name, len(m.Out.WR))
		}
		wr := m.Out.WR[0]
		if wr.Op != c.op || wr.Remote != 4096 || wr.RKey != 77 || wr.Body.Len() != 100 || wr.ID != x.Handle() || wr.HeadLen != 0 {
			t.Errorf("%s: posts %v of %d bytes at %d with key %d", c.name, wr.Op, wr.Body.Len(), wr.Remote, wr.RKey)
		}
		if x.Done() {
			t.Errorf("%s: it has ended before its work request", c.name)
		}
		if c.gone {
			m.FailLink(l, errors.New("the peer is gone"))
		} else {
			m.Completed(x.Handle(), c.status, 100)
		}
		good := c.status == rdma.StatusOK && !c.gone
		if !x.Done() || (x.Err == nil) != good || good && x.Len != 100 || len(m.Out.Done) != 1 {
			t.Errorf("%s: done %v, error %v, %d bytes, listed %d times", c.name, x.Done(), x.Err, x.Len, len(m.Out.Done))
		}
	}
}

// TestMoveIsNoRendezvous: no peer may propose it for a message.
func TestMoveIsNoRendezvous(t *testing.T) {
	attr := testAttr(0)
	m := New(Config{}, newMemory(0, 1<<16))
	l := &Link{Rank: 1, Attr: &attr, Open: true}
	m.SetUp(l)
	pkt := make([]byte, headRTS)
	pkt[offKind], pkt[offProto] = byte(kindRTS), protoMove
	m.Arrived(l, pkt)
	if !errors.Is(l.Err, ErrProtocol) {
		t.Errorf("an RTS that proposes it leaves the link with %v, want a broken protocol", l.Err)
	}
	for _, choice := range l.Choices() {
		if choice.Protocol == (windowMove{}).Name() {
			t.Errorf("messages of %d to %d bytes go by it", choice.Lo, choice.Hi)
		}
	}
}
