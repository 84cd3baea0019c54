package recvpool

import (
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// queue is a receive queue of a device: it accepts buffers, uses them in order, and reports
// once when fewer than its low watermark are left.
type queue struct {
	posted  []rdma.RecvWR
	depth   int
	low     int
	warned  bool
	open    map[uint32]bool // registrations
	lastKey uint32
	refuses bool
}

func (q *queue) post(wrs []rdma.RecvWR) (int, error) {
	n := min(len(wrs), q.depth-len(q.posted))
	q.posted = append(q.posted, wrs[:n]...)
	if len(q.posted) >= q.low {
		q.warned = false
	}
	if n < len(wrs) {
		return n, rdma.ErrAgain
	}
	return n, nil
}

func (q *queue) register([]byte) (rdma.MR, error) {
	if q.refuses {
		return rdma.MR{}, rdma.ErrNoResources
	}
	q.lastKey++
	q.open[q.lastKey] = true
	return rdma.MR{LKey: q.lastKey}, nil
}

func (q *queue) deregister(mr rdma.MR) error {
	delete(q.open, mr.LKey)
	return nil
}

// take uses a buffer for a message, and reports whether the queue runs low.
func (q *queue) take(t *testing.T) (id uint64, low bool) {
	t.Helper()
	if len(q.posted) == 0 {
		t.Fatal("no buffer for a message")
	}
	wr := q.posted[0]
	q.posted = q.posted[1:]
	if !q.open[wr.LKey] {
		t.Fatalf("buffer %d is posted with the unregistered key %d", wr.ID, wr.LKey)
	}
	if low = len(q.posted) < q.low && !q.warned; low {
		q.warned = true
	}
	return wr.ID, low
}

func newTest(t *testing.T, least, most int) (*Pool, *queue) {
	t.Helper()
	q := &queue{open: map[uint32]bool{}}
	c := Config{Size: 100, Least: least, Most: most, Quiet: time.Second, Post: q.post, Register: q.register, Deregister: q.deregister}
	q.low, q.depth = c.Watermark(), c.Depth()
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p, q
}

// burst delivers messages before any of them is read, then reads them all.
func burst(t *testing.T, p *Pool, q *queue, messages int, now time.Duration) {
	t.Helper()
	var ids []uint64
	for range messages {
		id, low := q.take(t)
		p.Took()
		ids = append(ids, id)
		if low {
			p.RanLow(now)
		}
	}
	for _, id := range ids {
		p.Return(id)
	}
	p.RecordDrained(now)
}

// The number of buffers follows bursts that grow and cease.
func TestGrowAndShrink(t *testing.T) {
	p, q := newTest(t, 16, 128)
	at := time.Duration(0)
	for _, step := range []struct {
		name     string
		messages int
		now      int    // buffers afterwards
		events   uint64 // in all
	}{
		{"few messages", 10, 16, 0},
		{"a burst", 14, 32, 1},
		{"twice the burst", 25, 32, 1},
		{"a large burst", 100, 128, 3},
		{"beyond the bound", 126, 128, 4},
	} {
		burst(t, p, q, step.messages, at)
		if s := p.Stats(); s.Now != step.now || s.LowWater != step.events {
			t.Errorf("%s: %d buffers and %d events, want %d and %d", step.name, s.Now, s.LowWater, step.now, step.events)
		}
		if n := len(q.posted) + len(p.back); n != p.Stats().Now || len(p.back) >= p.together() {
			t.Errorf("%s: %d posted and %d returned buffers of %d after all were read", step.name, len(q.posted), len(p.back), p.Stats().Now)
		}
	}
	for range 20 { // quiet seconds, with a few messages each
		at += 1100 * time.Millisecond
		for range 40 {
			burst(t, p, q, 3, at)
		}
	}
	s := p.Stats()
	if s.Now != 16 || s.Bytes != 16*100 || s.Peak != 128 || s.Shrunk != 3 {
		t.Errorf("after a quiet time: %d buffers of %d bytes, peak %d, shrunk %d times; want 16, 1600, 128 and 3", s.Now, s.Bytes, s.Peak, s.Shrunk)
	}
	if len(q.open) != 1 {
		t.Errorf("%d slabs are registered, want only the first", len(q.open))
	}
	if err := p.Close(); err != nil || len(q.open) != 0 {
		t.Errorf("Close leaves %d registrations and returns %v", len(q.open), err)
	}
}

// The pool grows again before retiring buffers are freed.
func TestReactivateRetiring(t *testing.T) {
	p, q := newTest(t, 16, 32)
	burst(t, p, q, 14, 0)
	burst(t, p, q, 1, 2*time.Second) // the peak of 14 is recent
	burst(t, p, q, 1, 4*time.Second)
	if s := p.Stats(); s.Now != 16 || s.Bytes != 3200 {
		t.Fatalf("%d buffers and %d bytes, want 16 and the memory of 32", s.Now, s.Bytes)
	}
	burst(t, p, q, 31, 5*time.Second)
	if s := p.Stats(); s.Now != 32 || s.Bytes != 3200 || len(q.open) != 2 {
		t.Errorf("%d buffers and %d bytes in %d slabs, want 32 and 3200 in 2", s.Now, s.Bytes, len(q.open))
	}
}

// The device refuses to register more.
func TestRegisterRefused(t *testing.T) {
	p, q := newTest(t, 16, 128)
	q.refuses = true
	burst(t, p, q, 14, 0)
	if s := p.Stats(); s.Now != 16 || s.LowWater != 1 || p.Err() == nil {
		t.Errorf("%d buffers, %d events, error %v; want 16, 1 and the refusal", s.Now, s.LowWater, p.Err())
	}
	burst(t, p, q, 14, 0) // the existing buffers suffice
}

// Taking and returning buffers does not allocate.
func TestNoAllocation(t *testing.T) {
	p, q := newTest(t, 32, 32)
	if n := testing.AllocsPerRun(100, func() {
		for range 20 {
			wr := q.posted[0]
			q.posted = append(q.posted[:0], q.posted[1:]...)
			p.Took()
			p.Return(wr.ID)
		}
		p.RecordDrained(0)
	}); n != 0 {
		t.Errorf("20 messages: %v allocations", n)
	}
}

func TestInvalidConfig(t *testing.T) {
	for _, c := range []Config{{}, {Size: 10}, {Size: 10, Least: 8, Most: 4, Post: (&queue{}).post}} {
		if _, err := New(c); err == nil {
			t.Errorf("New(%+v) returns a pool", c)
		}
	}
}
