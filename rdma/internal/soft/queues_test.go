package soft

import (
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// testDevice is a device whose source never reports anything.
type testDevice struct {
	Device
	mu     sync.Mutex
	due    time.Duration // what Sleep returns at most
	sleeps int           // prepared and not ended
	posted int
	given  []int // loans that were given back to a closed queue
}

type testQueue struct{ CQ[int] }

func (c *testQueue) Poll(out []rdma.Completion) int {
	c.Begin()
	return c.Take(out)
}

func newTestDevice(t *testing.T) *testDevice {
	t.Helper()
	d := &testDevice{due: Forever}
	d.Init("test", &d.mu, Hooks{
		Sleep: func(limit time.Duration) time.Duration {
			if limit = min(limit, d.due); limit > 0 {
				d.sleeps++
			}
			return limit
		},
		Awake:    func() { d.sleeps-- },
		Posted:   func() { d.posted++ },
		Progress: func() time.Duration { return 0 },
	})
	d.InitRegions(rand.Reader, false)
	t.Cleanup(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !d.Closed {
			d.Close()
		}
		if d.waiting != 0 || d.sleeps != 0 {
			t.Errorf("after Close %d waiters and %d prepared sleeps are counted", d.waiting, d.sleeps)
		}
	})
	return d
}

func (d *testDevice) newQueue(t *testing.T) *testQueue {
	t.Helper()
	c := new(testQueue)
	if err := c.Open(&d.Device, func(l int) { d.given = append(d.given, l) }); err != nil {
		t.Fatal(err)
	}
	return c
}

func ids(list []rdma.Completion) (n []uint64) {
	for _, c := range list {
		n = append(n, c.ID)
	}
	return n
}

// TestQueueKeepsOrderAndLoans polls with little room, and beside the application.
func TestQueueKeepsOrderAndLoans(t *testing.T) {
	d := newTestDevice(t)
	c := d.newQueue(t)
	out := make([]rdma.Completion, 3)
	for round := range uint64(200) {
		for i := range uint64(3) {
			if id := 3*round + i; id%2 == 0 {
				c.Lend(rdma.Completion{ID: id}, int(id))
			} else {
				c.Push(rdma.Completion{ID: id})
			}
		}
		lent, ok := c.Begin()
		if last := 3 * int(round-1); !ok || round > 0 && (len(lent) == 0 || lent[0] != last+last%2) {
			t.Fatalf("round %d: Begin returns %v, %v", round, lent, ok)
		}
		if n := c.Take(out); n != 3 || out[0].ID != 3*round || out[2].ID != 3*round+2 {
			t.Fatalf("round %d: Take returns %d: %v", round, n, ids(out[:n]))
		}
	}
	c.Lend(rdma.Completion{ID: 1000}, 1000)
	c.SetBeside(true)
	if lent, _ := c.Begin(); len(lent) != 0 {
		t.Errorf("a Poll beside the application takes back %v", lent)
	}
	c.Take(out)
	c.SetBeside(false)
	if lent, _ := c.Begin(); len(lent) != 2 || lent[0] != 598 || lent[1] != 1000 {
		t.Errorf("the next Poll takes back %v, want 598 of the application and 1000", lent)
	}
	c.Lend(rdma.Completion{}, 1)
	c.Take(out)
	c.Lend(rdma.Completion{}, 2)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c.Lend(rdma.Completion{}, 3)
	if len(d.given) != 3 {
		t.Errorf("a closed queue gave back %v, want 1, 2 and 3", d.given)
	}
	if _, ok := c.Begin(); ok || c.Len() != 0 {
		t.Error("a closed queue can be polled")
	}
}

func TestReceiveQueue(t *testing.T) {
	d := newTestDevice(t)
	c := d.newQueue(t)
	var r SRQ
	if err := d.OpenSRQ(&r, rdma.SRQConfig{Depth: 3, LowWater: 2}, 0); err != nil {
		t.Fatal(err)
	}
	for round := range uint64(5) {
		wrs := []rdma.RecvWR{{ID: 4 * round}, {ID: 4*round + 1}, {ID: 4*round + 2}, {ID: 4*round + 3}}
		if n, err := r.PostRecv(wrs); n != 3 || err != rdma.ErrAgain {
			t.Fatalf("4 buffers in a queue of 3: %d, %v", n, err)
		}
		for i := range uint64(3) {
			if wr, ok := c.Receive(&r); !ok || wr.ID != 4*round+i {
				t.Fatalf("buffer %d is %d, %v", i, wr.ID, ok)
			}
		}
		if _, ok := c.Receive(&r); ok || r.Supplies() {
			t.Fatal("an empty queue has a buffer")
		}
	}
	if c.Len() != 5 || d.LowWaters != 5 || d.posted != 5 {
		t.Errorf("%d completions, %d low-water events and %d notices of posted buffers, want 5 each", c.Len(), d.LowWaters, d.posted)
	}
	var lends, own SRQ
	if err := errors.Join(d.OpenSRQ(&lends, rdma.SRQConfig{Lend: true, Depth: 100}, 2), d.OpenOwn(&own)); err != nil {
		t.Fatal(err)
	}
	if lends.Lent = 1; !lends.MayLend() {
		t.Error("one of two messages is lent, and no other may be")
	}
	if lends.Lent = 2; lends.MayLend() {
		t.Error("both messages are lent, and another may be")
	}
	if _, err := lends.PostRecv(make([]rdma.RecvWR, 1)); !errors.Is(err, rdma.ErrUnsupported) {
		t.Errorf("posting to a lending queue: %v", err)
	}
	if _, err := r.PostOwn(make([]rdma.RecvWR, 1)); !errors.Is(err, rdma.ErrUnsupported) {
		t.Errorf("posting to a queue pair with a shared queue: %v", err)
	}
	if n, err := own.PostOwn(make([]rdma.RecvWR, 1)); n != 1 || err != nil {
		t.Errorf("posting to a queue pair: %d, %v", n, err)
	}
}

func TestChecks(t *testing.T) {
	d, other := newTestDevice(t), newTestDevice(t)
	c, foreign := d.newQueue(t), other.newQueue(t)
	var srq SRQ
	if err := other.OpenSRQ(&srq, rdma.SRQConfig{}, 0); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		cfg  rdma.QPConfig
		want string
	}{
		{rdma.QPConfig{Type: rdma.RD, SendCQ: c, RecvCQ: c}, ""},
		{rdma.QPConfig{Type: rdma.RC, SendCQ: c, RecvCQ: c}, "test: queue pairs of this device are of type RD or UD"},
		{rdma.QPConfig{SendCQ: c, RecvCQ: c}, "of type RD or UD"},
		{rdma.QPConfig{Type: rdma.RD, SendCQ: c}, "same device"},
		{rdma.QPConfig{Type: rdma.RD, SendCQ: c, RecvCQ: foreign}, "same device"},
		{rdma.QPConfig{Type: rdma.RD, SendCQ: c, RecvCQ: c, SRQ: &srq}, "QPConfig.SRQ"},
	} {
		_, _, _, err := QueuesOf[*testQueue, *SRQ](&d.Device, &x.cfg, rdma.RD|rdma.UD)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.cfg, err, x.want)
		}
	}
	a := &rdma.Attr{Ops: rdma.Ops(rdma.OpSend, rdma.OpRead), MaxSend: 100, MaxInline: 50, MaxTransfer: 1000}
	for _, x := range []struct {
		op   rdma.Op
		head uint16
		body int
		inl  rdma.Flags
		want string
	}{
		{rdma.OpSend, 40, 60, 0, ""},
		{rdma.OpSend, 40, 61, 0, "Attr.MaxSend"},
		{rdma.OpSend, 0, 51, rdma.Inline, "Attr.MaxInline"},
		{rdma.OpRead, 0, 51, rdma.Inline, ""},
		{rdma.OpRead, 0, 1001, 0, "Attr.MaxTransfer"},
		{rdma.OpSend, rdma.HeadMax + 1, 0, 0, "a head of"},
		{rdma.OpWrite, 0, 1, 0, "operation"},
	} {
		wr := rdma.SendWR{Op: x.op, HeadLen: x.head, Body: rdma.MemOf(make([]byte, x.body)), Flags: x.inl}
		err := d.CheckSend(&wr, a)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v of %d+%d bytes: %v, want %q", x.op, x.head, x.body, err, x.want)
		}
	}
}
