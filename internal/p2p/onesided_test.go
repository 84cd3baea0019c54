package p2p

import (
	"errors"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// A transfer posts one work request and completes with it.
func TestTransferIsOneWorkRequest(t *testing.T) {
	for _, c := range []struct {
		name   string
		op     rdma.Op
		status rdma.Status
		gone   bool // the link fails before the completion
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
		m.Transfer(x, c.op, 4096, 77)
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
			m.HandleCompletion(x.Handle(), c.status, 100)
		}
		good := c.status == rdma.StatusOK && !c.gone
		if !x.Done() || (x.Err == nil) != good || good && x.Len != 100 || len(m.Out.Done) != 1 {
			t.Errorf("%s: done %v, error %v, %d bytes, listed %d times", c.name, x.Done(), x.Err, x.Len, len(m.Out.Done))
		}
	}
}

// A peer must not propose a one-sided transfer for a message.
func TestTransferIsNoRendezvous(t *testing.T) {
	attr := testAttr(0)
	m := New(Config{}, newMemory(0, 1<<16))
	l := &Link{Rank: 1, Attr: &attr, Open: true}
	m.SetUp(l)
	pkt := make([]byte, headRTS)
	pkt[offKind], pkt[offProto] = byte(kindRTS), protoOneSided
	m.HandlePacket(l, pkt)
	if !errors.Is(l.Err, ErrProtocol) {
		t.Errorf("an RTS that proposes it leaves the link with %v, want a broken protocol", l.Err)
	}
	for _, choice := range l.Choices() {
		if choice.Protocol == protocolName(protoOneSided) {
			t.Errorf("messages of %d to %d bytes go by it", choice.Lo, choice.Hi)
		}
	}
}

// A transfer that exceeds the limit of the device is cut, with a bounce buffer and without.
func TestTransferCut(t *testing.T) {
	for _, c := range []struct {
		name   string
		op     rdma.Op
		staged bool
		bad    int // the request that fails, 0: none
	}{
		{"put", rdma.OpWrite, false, 0}, {"get", rdma.OpRead, false, 0},
		{"staged put", rdma.OpWrite, true, 0}, {"staged get", rdma.OpRead, true, 0},
		{"get that fails", rdma.OpRead, true, 2},
	} {
		m, l, s := staging()
		limited := *l.Attr
		limited.MaxTransfer = 1000
		if l.Attr = &limited; !c.staged {
			limited.LocalKeys = false
		}
		x := startTransfer(m, l, c.op, 2500, 7)
		for i, want := range []int{1000, 1000, 500} {
			if len(m.Out.WR) != 1 {
				t.Fatalf("%s: %d work requests at a time, want 1", c.name, len(m.Out.WR))
			}
			wr := &m.Out.WR[0]
			home := rdma.MemOf(x.Buf).Addr()
			if c.staged {
				home = rdma.MemOf(s.stage.Mem).Addr()
			}
			if wr.Body.Len() != want || wr.Body.Addr() != home+uint64(1000*i) || wr.Remote != 4096+uint64(1000*i) || wr.RKey != 9 || wr.Op != c.op || wr.ID != x.Handle() {
				t.Errorf("%s: request %d is a %v of %d bytes from byte %d at %d, want %d bytes from byte %d", c.name, i+1, wr.Op, wr.Body.Len(), wr.Body.Addr()-home, wr.Remote, want, 1000*i)
			}
			for k := range wr.Body.Bytes() {
				if c.op == rdma.OpRead {
					wr.Body.Bytes()[k] = byte(i + 1)
				} else if wr.Body.Bytes()[k] != 7 {
					t.Fatalf("%s: request %d carries %d, want 7", c.name, i+1, wr.Body.Bytes()[k])
				}
			}
			m.Out.WR, m.Out.Link = m.Out.WR[:0], m.Out.Link[:0]
			if x.Done() {
				t.Errorf("%s: it has ended before its last work request", c.name)
			}
			if c.bad == i+1 {
				m.HandleCompletion(x.Handle(), rdma.StatusRemoteAccess, 0)
				break
			}
			m.HandleCompletion(x.Handle(), rdma.StatusOK, want)
		}
		if !x.Done() || (x.Err == nil) != (c.bad == 0) || len(m.Out.WR) != 0 || len(m.Out.Done) != 1 {
			t.Errorf("%s: done %v, error %v, %d more requests, listed %d times", c.name, x.Done(), x.Err, len(m.Out.WR), len(m.Out.Done))
		}
		if c.op == rdma.OpRead && c.bad == 0 && (x.Buf[0] != 1 || x.Buf[1500] != 2 || x.Buf[2499] != 3) {
			t.Errorf("%s: the buffer has %d, %d, %d, want 1, 2, 3", c.name, x.Buf[0], x.Buf[1500], x.Buf[2499])
		}
		if c.staged && s.unplaced != 1 {
			t.Errorf("%s: the stage was given back %d times", c.name, s.unplaced)
		}
	}
}
