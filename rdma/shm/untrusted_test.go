package shm

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Data that a peer writes into a segment is not trusted. These tests write invalid data:
// nothing may panic or access other memory, and the rank must notice that the peer has
// failed.

// put appends a message to the shared queue of r, as if from source.
func (r *rank) put(source int, k kind, data []byte) bool {
	wr := rdma.SendWR{Body: rdma.MemOf(data)}
	return r.dev.seg.appendShared(source, k, &wr, true)
}

// message returns the Head of a message of the device itself.
func (q *request) message(body []byte) []byte {
	var wr rdma.SendWR
	q.put(&wr)
	return append(wr.Head[:requestBytes:requestBytes], body...)
}

// wantFault polls until a receive from the peer fails, and then checks that nothing can be
// sent to it any more.
func (r *rank) wantFault(t *testing.T, from int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		r.poll()
		for i, c := range r.got {
			if c.Op == rdma.OpRecv && c.Peer == rdma.PeerID(from) && c.Status == rdma.StatusFault {
				r.got = append(r.got[:i], r.got[i+1:]...)
				goto found
			}
		}
		if time.Now().After(end) {
			t.Fatalf("no receive from peer %d has failed; got %+v", from, r.got)
		}
	}
found:
	c, err := r.do(rdma.SendWR{ID: 77, Op: rdma.OpSend, Peer: rdma.PeerID(from)})
	if err != nil || c.Status != rdma.StatusPeerGone {
		t.Errorf("a send to the failed peer ended with %v, %v; want %v", c.Status, err, rdma.StatusPeerGone)
	}
}

func TestBadSharedQueueCells(t *testing.T) {
	for _, c := range []struct {
		name string
		meta uint64
	}{
		{"length beyond the cell", packMeta(0, noBlock, kindData, queueInline+1)},
		{"enormous length", packMeta(0, noBlock, kindData, math.MaxUint32&math.MaxInt)},
		{"length beyond a small block", packMeta(0, 0, kindData, smallBlockBytes+1)},
		{"length beyond a large block", packMeta(0, largeBlock, kindData, largeBlockBytes+1)},
		{"small block that does not exist", packMeta(0, largeBlock-1, kindData, 100)},
		{"large block that does not exist", packMeta(0, noBlock-1, kindData, 100)},
		{"unknown kind", packMeta(0, noBlock, kindCount, 8)},
		{"largest kind", packMeta(0, noBlock, 255, 8)},
		{"ring without a number", packMeta(0, noBlock, kindRingOpen, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := heapRanks(t, 2, Config{})[1]
			pos := b.dev.seg.head.tail.Load()
			b.put(0, kindData, nil)
			b.dev.seg.cells[pos&uint64(len(b.dev.seg.cells)-1)].meta = c.meta
			b.wantFault(t, 0)
		})
	}
}

func TestBadDeviceMessages(t *testing.T) {
	for _, c := range []struct {
		name string
		k    kind
		data []byte
	}{
		{"ring that does not exist", kindRingOpen, []byte{200}},
		{"ring with a tail", kindRingOpen, []byte{0, 0}},
		{"short write", kindWrite, make([]byte, requestBytes-1)},
		{"empty read request", kindReadRequest, nil},
		{"short answer", kindAnswer, make([]byte, 8)},
		{"write longer than its bytes", kindWrite, (&request{length: 100}).message(make([]byte, 99))},
		{"reply without a request", kindReadReply, (&request{number: 5, length: 1}).message([]byte{1})},
		{"answer without a request", kindAnswer, (&request{number: 1 << 31}).message(nil)},
		{"hello without an address", kindHello, []byte("nonsense")},
		{"hello with another's address", kindHello, []byte(address{heap: true, index: 1, nonce: 1}.String())},
		{"end of a ring outside of one", kindRingClose, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := heapRanks(t, 2, Config{NoProcessVM: true})[1]
			if !b.put(0, c.k, c.data) {
				t.Fatal("the queue has no room")
			}
			b.wantFault(t, 0)
		})
	}
}

func TestBadRingCells(t *testing.T) {
	for name, tag := range map[string]uint64{
		"too long":           ringTag(1, kindData, maxSend+1),
		"longer than a ring": ringTag(1, kindData, ringLength),
		"unknown kind":       ringTag(1, kindCount, 8),
		"short write":        ringTag(1, kindWrite, 8),
	} {
		t.Run(name, func(t *testing.T) {
			b := heapRanks(t, 2, Config{})[1]
			b.dev.seg.ring(0).cells[0].tag.Publish(tag)
			b.put(0, kindRingOpen, []byte{0})
			b.wantFault(t, 0)
		})
	}
}

// TestBadAnswers sends invalid answers to a read and a write. The transfer must end, and
// memory around its buffer must stay unchanged.
func TestBadAnswers(t *testing.T) {
	for _, c := range []struct {
		name string
		op   rdma.Op
		k    kind
		edit func(q *request)
		body int
		from int
	}{
		{"offset beyond the buffer", rdma.OpRead, kindReadReply, func(q *request) { q.offset = 1 << 40 }, 100, 0},
		{"offset that wraps around", rdma.OpRead, kindReadReply, func(q *request) { q.offset = 1<<64 - 50 }, 100, 0},
		{"offset out of order", rdma.OpRead, kindReadReply, func(q *request) { q.offset = 100 }, 100, 0},
		{"longer than asked", rdma.OpRead, kindReadReply, func(q *request) { q.length = 5000 }, 5000, 0},
		{"length of other bytes", rdma.OpRead, kindReadReply, func(q *request) { q.length = 200 }, 100, 0},
		{"enormous length", rdma.OpRead, kindReadReply, func(q *request) { q.length = 1<<64 - 1 }, 100, 0},
		{"a status that no device has", rdma.OpRead, kindAnswer, func(q *request) { q.status = statusRefused }, 0, 0},
		{"complete without bytes", rdma.OpRead, kindAnswer, func(q *request) { q.length = 4096 }, 0, 0},
		{"bytes for a write", rdma.OpWrite, kindReadReply, func(q *request) {}, 100, 0},
		{"more than was written", rdma.OpWrite, kindAnswer, func(q *request) { q.length = 1 << 30 }, 0, 0},
		{"from another peer", rdma.OpRead, kindReadReply, func(q *request) {}, 100, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			ranks := heapRanks(t, 3, Config{NoProcessVM: true})
			a, b := ranks[1], ranks[0] // b does not poll
			mr, err := b.dev.Register(pattern(1, 4096), rdma.RemoteRead|rdma.RemoteWrite)
			if err != nil {
				t.Fatal(err)
			}
			whole := pattern(2, 3*4096)
			body := whole[4096:8192]
			if err := a.post(rdma.SendWR{ID: 9, Op: c.op, Peer: 0, Remote: mr.Base, RKey: mr.RKey, Body: rdma.MemOf(body)}); err != nil {
				t.Fatal(err)
			}
			a.poll()
			x := a.dev.copies.all[0]
			q := request{number: x.number, ticket: x.ticket, length: uint64(c.body)}
			c.edit(&q)
			a.put(c.from, c.k, q.message(make([]byte, c.body)))
			a.wantFault(t, c.from)
			if c.from == 0 {
				if len(a.got) != 1 || a.got[0].ID != 9 || a.got[0].Status != rdma.StatusFault {
					t.Errorf("the transfer should end with %v; completions: %+v", rdma.StatusFault, a.got)
				}
			}
			for i, v := range pattern(2, 3*4096) {
				if whole[i] != v {
					t.Fatalf("byte %d was changed", i)
				}
			}
		})
	}
}

// TestBadSlots changes the size of a registration in the segment. The owner serves a
// peer's request by its own record.
func TestBadSlots(t *testing.T) {
	ranks := heapRanks(t, 2, Config{NoProcessVM: true})
	a, b := ranks[0], ranks[1]
	mr, err := b.dev.Register(pattern(1, 4096), rdma.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	sl := b.dev.seg.slot(int(mr.RKey & keySlotMask))
	sl.size.Publish(1 << 40)
	sl.rights.Publish(0xff)
	for _, op := range []rdma.Op{rdma.OpRead, rdma.OpWrite} {
		if err := a.post(rdma.SendWR{ID: 3, Op: op, Peer: 1, Remote: mr.Base, RKey: mr.RKey, Body: rdma.MemOf(make([]byte, 8192))}); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); len(a.got) == 0 && time.Now().Before(end); b.poll() {
			a.poll()
		}
		if len(a.got) != 1 || a.got[0].Status != rdma.StatusRemoteAccess {
			t.Fatalf("%v beyond the region should end with %v; completions: %+v", op, rdma.StatusRemoteAccess, a.got)
		}
		a.got = nil
	}
	sl.key.Publish(0)
	if err := b.dev.Deregister(mr); err != nil {
		t.Errorf("a slot that a peer has damaged should not prevent the owner from deregistering: %v", err)
	}
}

// TestBadCooperativeCopies writes invalid values for each side of a cooperative copy.
func TestBadCooperativeCopies(t *testing.T) {
	const size = 1 << 20
	for name, edit := range map[string]func(ps *pullState){
		"source before the region": func(ps *pullState) { ps.source -= 1 << 30 },
		"source after the region":  func(ps *pullState) { ps.source += 1 << 30 },
		"longer than the region":   func(ps *pullState) { ps.length = 1 << 40 },
		"cursor that wraps around": func(ps *pullState) { ps.source = 1<<64 - 10 },
	} {
		t.Run("owner, "+name, func(t *testing.T) {
			ranks := heapRanks(t, 2, Config{})
			a, b := ranks[0], ranks[1]
			region := pattern(1, size)
			mr, err := b.dev.Register(region, rdma.RemoteRead|rdma.Cooperative)
			if err != nil {
				t.Fatal(err)
			}
			// Larger than what is copied when it is posted, so that the owner finds it
			// open.
			if err := a.post(rdma.SendWR{ID: 1, Op: rdma.OpPull, Peer: 1, Remote: mr.Base, RKey: mr.RKey, Body: rdma.MemOf(make([]byte, size))}); err != nil {
				t.Fatal(err)
			}
			edit(&b.dev.seg.slot(int(mr.RKey & keySlotMask)).pull)
			if err := b.post(rdma.SendWR{ID: 2, Op: rdma.OpPush, Peer: 0, RKey: mr.RKey, Body: rdma.MemOf(region)}); err != nil {
				t.Fatal(err)
			}
			for range 100 {
				b.poll()
			}
		})
	}
	t.Run("puller, piece out of range", func(t *testing.T) {
		ranks := heapRanks(t, 2, Config{})
		a, b := ranks[0], ranks[1]
		mr, err := b.dev.Register(pattern(1, size), rdma.RemoteRead|rdma.Cooperative)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.post(rdma.SendWR{ID: 1, Op: rdma.OpPull, Peer: 1, Remote: mr.Base, RKey: mr.RKey, Body: rdma.MemOf(make([]byte, size))}); err != nil {
			t.Fatal(err)
		}
		ps := &b.dev.seg.slot(int(mr.RKey & keySlotMask)).pull
		ps.cursor.Publish(claimedAll(ps.cursor.Load()>>epochShift, size)) // all claimed by the owner
		ps.gave.Publish(gaveValid | 1<<40 | 4096)                         // and given back: a piece that does not exist
		c, err := a.next()
		if err != nil || c.ID != 1 || c.Status != rdma.StatusFault {
			t.Errorf("the pull should end with %v, got %+v, %v", rdma.StatusFault, c, err)
		}
	})
}

// TestDamagedTailEndsTheSearch fills a peer's queue with cells that claim to be of later
// laps: PostSend must stop searching.
func TestDamagedTailEndsTheSearch(t *testing.T) {
	b := heapRanks(t, 2, Config{})[1]
	for i := range b.dev.seg.cells {
		b.dev.seg.cells[i].seq.Publish(99)
	}
	if b.put(0, kindData, nil) {
		t.Error("a queue without a free cell has accepted a message")
	}
}

// FuzzSegment lets a peer write an arbitrary cell and an arbitrary message while a read
// and a write are outstanding. Nothing may panic.
func FuzzSegment(f *testing.F) {
	f.Add(uint64(0), packMeta(1, noBlock, kindData, 60), []byte{})
	f.Add(ringTag(1, kindReadReply, 60), packMeta(0, 3, kindAnswer, 48), binary.LittleEndian.AppendUint64(nil, 1))
	f.Add(ringTag(1, kindWrite, maxSend), packMeta(0, largeBlock, kindRingOpen, 1), make([]byte, 100))
	f.Fuzz(func(t *testing.T, tag, meta uint64, data []byte) {
		ranks := heapRanks(t, 2, Config{NoProcessVM: true})
		a, b := ranks[1], ranks[0]
		mr, err := b.dev.Register(pattern(1, 4096), rdma.RemoteRead|rdma.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		mine, err := a.dev.Register(pattern(2, 4096), rdma.RemoteRead|rdma.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		for i, op := range []rdma.Op{rdma.OpRead, rdma.OpWrite} {
			if err := a.post(rdma.SendWR{ID: uint64(i), Op: op, Peer: 0, Remote: mr.Base, RKey: mr.RKey, Body: rdma.MemOf(make([]byte, 4096))}); err != nil {
				t.Fatal(err)
			}
		}
		a.poll()
		// A message with a plausible beginning reaches more code than a random one.
		data = data[:min(len(data), maxSend-requestBytes)]
		for _, k := range []kind{kindReadReply, kindAnswer, kindWrite, kindReadRequest} {
			q := request{number: uint32(meta) & 1, ticket: uint32(tag) & 1, key: mine.RKey, addr: mine.Base + tag>>32,
				length: uint64(len(data)) ^ meta>>60, offset: tag >> 40, need: rdma.Access(tag >> 24), status: rdma.Status(meta >> 56)}
			a.put(0, k, q.message(data))
		}
		pos := a.dev.seg.head.tail.Load()
		a.put(0, kindData, data)
		a.dev.seg.cells[pos&uint64(len(a.dev.seg.cells)-1)].meta = meta
		m := a.dev.seg.ring(0)
		m.cells[0].tag.Publish(tag)
		copy(m.allocate(int(a.dev.seg.geo.ringBytes)), data)
		a.put(0, kindRingOpen, []byte{0})
		for range 20 {
			a.poll()
		}
	})
}
