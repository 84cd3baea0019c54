package p2p

import (
	"errors"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// A device that would only copy an inline body gets longer messages without Inline, and the
// send completes with the request.
func TestCopyAbove(t *testing.T) {
	const limit = 100
	attr := testAttr(0)
	attr.MaxSend, attr.MaxInline, attr.CopyAbove = 4096, 4096, limit
	cases := []struct {
		size   int
		mode   Mode
		inline bool
	}{
		{limit, Standard, true}, {limit + 1, Standard, false}, {limit + 1, Synchronous, false}, {8192, Standard, true},
	}
	for _, c := range cases {
		m := New(Config{EagerLimit: 1 << 20}, nil)
		l := &Link{Rank: 1, Host: "host", Peer: 1, Attr: &attr}
		m.SetUp(l)
		x := m.New()
		x.Buf, x.Link, x.Mode, x.Send = make([]byte, c.size), l, c.mode, true
		if one := m.SendOne(l, 0, 0, 0, x.Buf); (one != nil) != (c.inline && c.size <= limit) {
			t.Errorf("%d bytes: SendOne returns a request: %v", c.size, one != nil)
		}
		m.Send(x)
		for i := range m.Out.WR {
			wr := &m.Out.WR[i]
			if (wr.Flags&rdma.Inline != 0) != c.inline {
				t.Errorf("%d bytes: inline is %v, want %v", c.size, !c.inline, c.inline)
			}
		}
		if c.inline {
			continue
		}
		if len(m.Out.WR) != 1 || m.Out.WR[0].ID != x.Handle() {
			t.Fatalf("%d bytes make %d requests, the first with ID %d, want one with %d", c.size, len(m.Out.WR), m.Out.WR[0].ID, x.Handle())
		}
		if m.HandleCompletion(x.Handle(), rdma.StatusOK, c.size); x.Done() != (c.mode == Standard) {
			t.Errorf("mode %d: done is %v when the request has completed", c.mode, x.Done())
		}
	}
	m := New(Config{}, nil)
	l := &Link{Rank: 1, Host: "host", Peer: 1, Attr: &attr}
	m.SetUp(l)
	x := m.New()
	x.Buf, x.Link, x.Send = make([]byte, 2*limit), l, true
	m.Send(x)
	m.HandleCompletion(x.Handle(), rdma.StatusPeerGone, 0)
	if !x.Done() || !errors.Is(x.Err, ErrTransport) {
		t.Errorf("after a failed request the send is %s with the error %v", x.Stage(), x.Err)
	}
}
