package p2p

import (
	"bytes"
	"errors"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// staging returns a machine that copies puts and gets of up to 4096 bytes.
func staging() (*Machine, *Link, *testSources) {
	m, l, s := sourcing(false)
	s.stage = &Stage{Mem: make([]byte, 4096), LKey: 55}
	m.StageUpTo(l, 4096)
	return m, l, s
}

// startTransfer starts a put or a get of n bytes with the value fill.
func startTransfer(m *Machine, l *Link, op rdma.Op, n int, fill byte) *Xfer {
	x := m.New()
	x.Link, x.Buf, x.Owner = l, bytes.Repeat([]byte{fill}, n), &Waiter{}
	m.Transfer(x, op, 4096, 9)
	return x
}

func TestStagedPut(t *testing.T) {
	m, l, s := staging()
	x := startTransfer(m, l, rdma.OpWrite, 1000, 7)
	wr := &m.Out.WR[0]
	if wr.LKey != 55 || wr.Body.Addr() != rdma.MemOf(s.stage.Mem).Addr() || wr.Body.Len() != 1000 || wr.ID != x.Handle() || wr.Remote != 4096 || wr.RKey != 9 {
		t.Errorf("the request is %+v, want 1000 bytes of the stage with its key", wr)
	}
	if !bytes.Equal(s.stage.Mem[:1000], x.Buf) || s.stage.Mem[1000] != 0 {
		t.Error("the stage does not have the bytes of the put, or more")
	}
	if s.unplaced != 0 {
		t.Error("the stage is released before the device has finished with it")
	}
	m.HandleCompletion(x.Handle(), rdma.StatusOK, 1000)
	if !x.Done() || x.Err != nil || x.Len != 1000 || s.unplaced != 1 || s.released != 0 {
		t.Errorf("done %v, %v, %d bytes; stage given back %d times, registrations %d", x.Done(), x.Err, x.Len, s.unplaced, s.released)
	}
}

func TestStagedGet(t *testing.T) {
	for _, status := range []rdma.Status{rdma.StatusOK, rdma.StatusRemoteAccess} {
		m, l, s := staging()
		x := startTransfer(m, l, rdma.OpRead, 1000, 7)
		if s.stage.Mem[0] == 7 {
			t.Error("a get copies into the stage")
		}
		for i := range s.stage.Mem {
			s.stage.Mem[i] = byte(i)
		}
		if x.Buf[1] != 7 {
			t.Error("the buffer changes before the end")
		}
		m.HandleCompletion(x.Handle(), status, 1000)
		good := status == rdma.StatusOK
		if !x.Done() || (x.Err == nil) != good || bytes.Equal(x.Buf, s.stage.Mem[:1000]) != good || s.unplaced != 1 {
			t.Errorf("%v: done %v, %v, the buffer has %d …; stage given back %d times", status, x.Done(), x.Err, x.Buf[:3], s.unplaced)
		}
	}
}

// The device accesses the program's memory directly if it is used often, if it is long, or if
// no Stage is free.
func TestTransferWithoutCopy(t *testing.T) {
	for _, c := range []struct {
		name           string
		n              int
		often, noStage bool
		lkey           uint32
		placed         int
	}{
		{"often", 1000, true, false, 77, 1},
		{"long", 4097, false, false, 0, 0},
		{"no stage", 1000, false, true, 0, 1},
	} {
		m, l, s := staging()
		if s.from = c.often; c.noStage {
			s.stage = nil
		}
		x := startTransfer(m, l, rdma.OpWrite, c.n, 7)
		if wr := &m.Out.WR[0]; wr.LKey != c.lkey || wr.Body.Addr() != rdma.MemOf(x.Buf).Addr() || s.placed != c.placed {
			t.Errorf("%s: the request is %+v; asked %d times, want %d", c.name, wr, s.placed, c.placed)
		}
		m.HandleCompletion(x.Handle(), rdma.StatusOK, c.n)
		if released := s.released == 1; !x.Done() || x.Err != nil || released != c.often || s.unplaced != 0 {
			t.Errorf("%s: done %v, %v; registration given back %d times, a stage %d", c.name, x.Done(), x.Err, s.released, s.unplaced)
		}
	}
}

// A device without local keys does not use Sources.
func TestTransferWithoutLocalKeys(t *testing.T) {
	m, l, s := staging()
	attr := *l.Attr
	attr.LocalKeys = false
	l.Attr = &attr
	if startTransfer(m, l, rdma.OpRead, 100, 7); s.placed != 0 || m.Out.WR[0].LKey != 0 {
		t.Errorf("asked %d times, key %d", s.placed, m.Out.WR[0].LKey)
	}
}

// The device may still write into the Stage of a get whose peer has failed: it is not reused
// before the request has completed.
func TestOrphanStage(t *testing.T) {
	for _, freed := range []bool{false, true} {
		m, l, s := staging()
		x := startTransfer(m, l, rdma.OpRead, 1000, 7)
		handle := x.Handle()
		m.FailLink(l, errors.New("the peer is gone"))
		if !x.Done() || x.Err == nil || s.unplaced != 0 {
			t.Fatalf("done %v, %v, the stage was given back %d times with its request under way", x.Done(), x.Err, s.unplaced)
		}
		if freed {
			m.Free(x)
			if other := m.New(); other != x { // the Xfer is in use for another operation
				t.Fatal("the operation was not used again")
			}
		}
		m.HandleCompletion(handle+1<<40, rdma.StatusOK, 1000) // of another operation
		if s.unplaced != 0 {
			t.Error("another completion gives the stage back")
		}
		s.stage.Mem[0] = 99
		m.HandleCompletion(handle, rdma.StatusFlushed, 0)
		m.HandleCompletion(handle, rdma.StatusFlushed, 0)
		if s.unplaced != 1 || len(m.orphans) != 0 || !freed && x.Buf[0] != 7 {
			t.Errorf("freed %v: the stage was given back %d times, %d are left", freed, s.unplaced, len(m.orphans))
		}
	}
}

func TestStageOfDroppedRequest(t *testing.T) {
	m, l, s := staging()
	startTransfer(m, l, rdma.OpWrite, 1000, 7)
	m.FailLink(l, errors.New("the peer is gone"))
	m.HandleDropped(m.Out.WR)
	if s.unplaced != 1 || len(m.orphans) != 0 {
		t.Errorf("the stage was given back %d times, %d are left", s.unplaced, len(m.orphans))
	}
	x := startTransfer(m, l, rdma.OpWrite, 1000, 7)
	if !x.Done() || x.Err == nil || s.placed != 1 {
		t.Errorf("a put to a peer that is gone: done %v, %v; asked %d times", x.Done(), x.Err, s.placed)
	}
}

func TestStagedTransferAllocs(t *testing.T) {
	m, l, _ := staging()
	buf, owner := make([]byte, 1000), &Waiter{}
	round := func() {
		for _, op := range []rdma.Op{rdma.OpWrite, rdma.OpRead} {
			x := m.New()
			x.Link, x.Buf, x.Owner = l, buf, owner
			m.Transfer(x, op, 4096, 9)
			m.HandleCompletion(x.Handle(), rdma.StatusOK, 1000)
			m.Free(x)
		}
		m.Out.WR, m.Out.Link, m.Out.Done = m.Out.WR[:0], m.Out.Link[:0], m.Out.Done[:0]
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("a put and a get allocate %v times", n)
	}
}
