package p2p

import (
	"errors"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// testSources selects which messages are sent without a copy.
type testSources struct {
	from     bool
	asked    []bool // waits
	released int
	stage    *Stage // bounce buffer of puts and gets that are not direct; nil: none is free
	placed   int
	unplaced int
}

func (s *testSources) Source(_ *Link, mem []byte, waits bool) (rdma.MR, bool) {
	s.asked = append(s.asked, waits)
	return rdma.MR{LKey: 77, Len: uint64(len(mem))}, s.from
}

func (s *testSources) TransferBuffer(_ *Link, mem []byte) (rdma.MR, bool, *Stage) {
	s.placed++
	return rdma.MR{LKey: 77, Len: uint64(len(mem))}, s.from, s.stage
}

func (s *testSources) ReleaseStage(_ *Link, via *Stage) {
	if via == s.stage {
		s.unplaced++
	}
}

func (s *testSources) Register(*Link, []byte, rdma.Access) (rdma.MR, error) { return rdma.MR{}, nil }
func (s *testSources) Deregister(_ *Link, mr rdma.MR) {
	if mr.LKey == 77 {
		s.released++
	}
}

func sourcing(from bool) (*Machine, *Link, *testSources) {
	attr := testAttr(0)
	attr.MaxSend, attr.MaxInline, attr.LocalKeys = 4096, 4096, true
	s := &testSources{from: from}
	m := New(Config{EagerLimit: 1 << 20}, s)
	m.UseSources(s)
	l := &Link{Rank: 1, Host: "host", Peer: 1, Attr: &attr}
	m.SetUp(l)
	m.SourceFrom(l, 128)
	return m, l, s
}

func TestSendShortDirect(t *testing.T) {
	m, l, s := sourcing(true)
	buf := make([]byte, 1000)
	wr, x := m.SendShort(l, 5, 0, 9, buf, true)
	if wr == nil || x == nil {
		t.Fatalf("SendShort gives %v and %v", wr, x)
	}
	one := &wr[0]
	if one.Flags&rdma.Inline != 0 || one.LKey != 77 || one.ID != x.Handle() || one.Body.Len() != 1000 || one.HeadLen != headLen {
		t.Errorf("the request is %+v, want one with the key of the buffer and the operation's ID", one)
	}
	if x.Done() || s.released != 0 {
		t.Error("the send has ended before the device is done with the buffer")
	}
	if m.HandleCompletion(x.Handle(), rdma.StatusOK, 1000); !x.Done() || x.Err != nil || s.released != 1 {
		t.Errorf("after the request: done %v, %v, given back %d times", x.Done(), x.Err, s.released)
	}
	m.Free(x)
}

func TestSendShortCopied(t *testing.T) {
	m, l, s := sourcing(false)
	wr, x := m.SendShort(l, 5, 0, 9, make([]byte, 1000), true)
	if wr == nil || x != nil || wr[0].Flags&rdma.Inline == 0 || wr[0].ID != 0 || wr[0].LKey != 0 {
		t.Errorf("SendShort gives %+v and %v", wr, x)
	}
	if len(s.asked) != 1 || !s.asked[0] {
		t.Errorf("asked %v, want once for who waits", s.asked)
	}
	if wr, _ := m.SendShort(l, 5, 0, 9, make([]byte, 4097), true); wr != nil {
		t.Error("a message that is longer than a packet is sent as one")
	}
	if l.Sourced(127) || !l.Sourced(128) {
		t.Error("Sourced does not begin at 128 bytes")
	}
	if wr := m.SendOne(l, 5, 0, 9, make([]byte, 1000)); wr == nil || len(s.asked) != 1 {
		t.Error("SendOne asks, or does not serve collectives any more")
	}
}

func TestSendShortFails(t *testing.T) {
	m, l, s := sourcing(true)
	_, x := m.SendShort(l, 5, 0, 9, make([]byte, 500), true)
	m.HandleCompletion(x.Handle(), rdma.StatusPeerGone, 0)
	if !x.Done() || !errors.Is(x.Err, ErrTransport) || s.released != 1 {
		t.Errorf("a request that fails: done %v, %v, given back %d times", x.Done(), x.Err, s.released)
	}
	_, x = m.SendShort(l, 5, 0, 9, make([]byte, 500), true)
	m.FailLink(l, errors.New("the peer is gone"))
	if !x.Done() || x.Err == nil || s.released != 2 {
		t.Errorf("a peer that is gone: done %v, %v, given back %d times", x.Done(), x.Err, s.released)
	}
	if wr, _ := m.SendShort(l, 5, 0, 9, make([]byte, 500), true); wr != nil {
		t.Error("something is sent to a peer that is gone")
	}
}

func TestSynchronousDirect(t *testing.T) {
	for _, ackFirst := range []bool{false, true} {
		m, l, s := sourcing(true)
		x := m.New()
		x.Buf, x.Link, x.Mode = make([]byte, 500), l, Synchronous
		m.Send(x)
		if len(m.Out.WR) != 1 || m.Out.WR[0].Flags&rdma.Inline != 0 || m.Out.WR[0].LKey != 77 {
			t.Fatalf("the request is %+v", m.Out.WR)
		}
		if len(s.asked) != 1 || s.asked[0] {
			t.Errorf("asked %v, want once for who does not wait for the device", s.asked)
		}
		steps := []func(){
			func() { m.HandleCompletion(x.Handle(), rdma.StatusOK, 500) },
			func() { m.advance(x, Event{Kind: EvACK}) },
		}
		if ackFirst {
			steps[0], steps[1] = steps[1], steps[0]
		}
		steps[0]()
		if x.Done() {
			t.Errorf("ACK first %v: it has ended after one of two", ackFirst)
		}
		if steps[1](); !x.Done() || x.Err != nil || s.released != 1 {
			t.Errorf("ACK first %v: done %v, %v, given back %d times", ackFirst, x.Done(), x.Err, s.released)
		}
	}
}

func TestSendShortNoAllocation(t *testing.T) {
	m, l, s := sourcing(true)
	buf := make([]byte, 1000)
	l.credit = 1 << 50
	round := func() {
		s.asked = s.asked[:0]
		_, x := m.SendShort(l, 5, 0, 9, buf, true)
		m.HandleCompletion(x.Handle(), rdma.StatusOK, 1000)
		m.Free(x)
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("a message allocates %v times", n)
	}
}
