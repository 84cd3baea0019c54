package soft

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Write-Records: pieces that are injected into a device, in any order and number.

// target is a device with a UD queue pair and a region, and the keys of a simulated
// peer.
type target struct {
	*Device
	q        *pair
	peerKeys *keyring
	region   []byte
	mr       rdma.MR
}

func newTarget(t testing.TB, size int) *target {
	t.Helper()
	d, q := newTestPair(t, rdma.UD)
	g := &target{Device: d, q: q, peerKeys: testKeyring(t, "the key of the test"), region: make([]byte, size)}
	var err error
	if g.mr, err = d.Register(g.region, rdma.RemoteWrite); err != nil {
		t.Fatal(err)
	}
	return g
}

// feed injects a datagram.
func (g *target) feed(h header, segment []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.to, h.from, h.toIncarnation = g.q.number, 1, g.keys.incarnation
	g.peerKeys.stampHeader(&h)
	s := g.incoming.store.take()
	s.n = copy(s.data, g.peerKeys.seal(append(h.append(nil), segment...)))
	s.from = rawOf(g.net.first.local)
	if !g.arrive(s) {
		g.incoming.store.giveBack(s)
	}
	g.flush()
}

// piece injects one piece of a message of total bytes at the start of the region, cut
// in tens. Every byte of it is fill.
func (g *target) piece(number, total uint32, index uint16, fill byte) {
	g.pieceAt(recordHeader{number: number, total: total, cut: 10, index: index, id: uint64(number) + 1000}, g.mr.Base, ddp.Tag(g.mr.RKey), fill)
}

func (g *target) pieceAt(r recordHeader, base uint64, tag ddp.Tag, fill byte) {
	last := uint64(r.index) == r.pieces()-1
	n := uint64(r.cut)
	if last {
		n = uint64(r.total) - r.offset()
	}
	b := make([]byte, ddp.TaggedLen)
	(&ddp.Header{Op: ddp.Write, Last: last, Tag: tag, TO: base + r.offset()}).Put(b)
	g.feed(header{kind: kindRecord, record: r}, append(b, bytes.Repeat([]byte{fill}, int(n))...))
}

// completions returns the completions as text: ID, range in the region, message length.
// It does not poll, because that lets time pass.
func (g *target) completions() (list []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	cq := g.q.recvCQ
	for cq.Len() > 0 {
		var one [1]rdma.Completion
		cq.Take(one[:])
		c := one[0]
		lo := 0
		if c.Data.Len() > 0 {
			lo = int(c.Data.Addr() - g.mr.Base)
		}
		list = append(list, fmt.Sprintf("%v %d [%d,%d) of %d", c.Op, c.ID, lo, lo+c.Data.Len(), c.Len))
	}
	return list
}

func TestWriteRecordOfPieces(t *testing.T) {
	for _, c := range []struct {
		name string
		feed func(g *target)
		want []string
		late uint64
	}{
		{"whole", func(g *target) {
			for i := range uint16(3) {
				g.piece(1, 25, i, 'a')
			}
		}, []string{"record 1001 [0,25) of 25"}, 0},
		{"one-piece", func(g *target) { g.piece(1, 7, 0, 'a') }, []string{"record 1001 [0,7) of 7"}, 0},
		{"nothing", func(g *target) { g.piece(1, 0, 0, 'a') }, []string{"record 1001 [0,0) of 0"}, 0},
		{"backwards-and-doubled", func(g *target) {
			for _, i := range []uint16{2, 2, 1, 1, 2, 0, 0} {
				g.piece(1, 25, i, 'a')
			}
		}, []string{"record 1001 [0,25) of 25"}, 1},
		{"doubled-when-ended", func(g *target) {
			g.piece(1, 7, 0, 'a')
			g.piece(1, 7, 0, 'b')
		}, []string{"record 1001 [0,7) of 7"}, 1},
		{"losses-until-a-later-one-ends", func(g *target) {
			for _, i := range []uint16{0, 2, 3, 6} {
				g.piece(1, 65, i, 'a')
			}
			g.piece(2, 7, 0, 'b')
			g.piece(1, 65, 1, 'c') // too late: the memory belongs to the user
		}, []string{"record 1001 [0,10) of 65", "record 1001 [20,40) of 65", "record 1001 [60,65) of 65", "record 1002 [0,7) of 7"}, 1},
		{"too-many-begun", func(g *target) {
			for number := uint32(1); number <= maxOpen+1; number++ {
				g.piece(number, 20, 1, 'a')
			}
		}, []string{"record 1001 [10,20) of 20"}, 0},
		{"an-earlier-one-comes-later", func(g *target) {
			g.piece(9, 5, 0, 'a')
			g.piece(8, 5, 0, 'b')
		}, []string{"record 1009 [0,5) of 5", "record 1008 [0,5) of 5"}, 0},
		{"far-behind", func(g *target) {
			g.piece(100, 5, 0, 'a')
			g.piece(30, 5, 0, 'b')
		}, []string{"record 1100 [0,5) of 5"}, 1},
		{"numbers-wrap", func(g *target) {
			g.piece(1<<32-1, 25, 0, 'a')
			g.piece(1, 5, 0, 'b')
		}, []string{"record 4294968295 [0,10) of 25", "record 1001 [0,5) of 5"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newTarget(t, 100)
			c.feed(g)
			got := g.completions()
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got completions %q, want %q", got, c.want)
			}
			if d := g.Drops(); d.Late != c.late || d.Malformed != 0 {
				t.Errorf("drops are %+v, want %d late", d, c.late)
			}
			if bytes.ContainsAny(g.region, "c") {
				t.Error("something was written after the message had ended")
			}
		})
	}
}

// TestWriteRecordExpires checks that an incomplete message is completed after a while.
func TestWriteRecordExpires(t *testing.T) {
	g := newTarget(t, 100)
	g.clock.read()
	g.piece(1, 25, 2, 'a')
	if got := g.completions(); len(got) > 0 {
		t.Fatalf("got completions %q although the rest may be in flight", got)
	}
	if err := g.q.recvCQ.Wait(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	var got []string
	for limit := time.Now().Add(testTimeout); len(got) == 0 && time.Now().Before(limit); {
		g.q.recvCQ.Poll(nil)
		got = g.completions()
	}
	if want := []string{"record 1001 [20,25) of 25"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got completions %q, want %q", got, want)
	}
}

// TestWriteRecordMemoryBound checks the limits of RFC 5042 section 6.4.
func TestWriteRecordMemoryBound(t *testing.T) {
	g := newTarget(t, 100)
	for range 2 * maxOpenAll {
		g.peerKeys.incarnation = newIncarnation() // each is another peer
		g.piece(1, 20, 0, 'a')
	}
	if n := len(g.q.records); n != maxOpenAll {
		t.Errorf("%d unfinished messages are kept, want %d", n, maxOpenAll)
	}
	for range 2 * maxUnpolled {
		g.peerKeys.incarnation = newIncarnation()
		g.piece(1, 5, 0, 'a')
	}
	if n := g.q.recvCQ.Len(); n > maxUnpolled+maxOpenAll {
		t.Errorf("%d completions are queued for a user that does not poll", n)
	}
	if g.Drops().NoRoom == 0 {
		t.Error("nothing was dropped although nobody polls")
	}
}

// TestWriteRecordRefused checks RFC 5042 section 6.2.1 for each piece, as for any
// tagged segment.
func TestWriteRecordRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		feed func(g *target)
	}{
		{"wrong-tag", func(g *target) {
			g.pieceAt(recordHeader{number: 1, total: 5, cut: 10}, g.mr.Base, ddp.Tag(g.mr.RKey)^1, 'x')
		}},
		{"beyond-the-end", func(g *target) {
			g.pieceAt(recordHeader{number: 1, total: 5, cut: 10}, g.mr.Base+96, ddp.Tag(g.mr.RKey), 'x')
		}},
		{"before-the-start", func(g *target) {
			g.pieceAt(recordHeader{number: 1, total: 5, cut: 10}, g.mr.Base-1, ddp.Tag(g.mr.RKey), 'x')
		}},
		{"a-piece-inside-of-a-message-that-is-not", func(g *target) {
			g.pieceAt(recordHeader{number: 1, total: 101, cut: 10}, g.mr.Base, ddp.Tag(g.mr.RKey), 'x')
		}},
		{"around-the-world", func(g *target) {
			g.pieceAt(recordHeader{number: 1, total: 20, cut: 10, index: 1}, ^uint64(4), ddp.Tag(g.mr.RKey), 'x')
		}},
		{"right-not-given", func(g *target) {
			mr, _ := g.Register(g.region, rdma.RemoteRead)
			g.pieceAt(recordHeader{number: 1, total: 5, cut: 10}, mr.Base, ddp.Tag(mr.RKey), 'x')
		}},
		{"deregistered", func(g *target) {
			_ = g.Deregister(g.mr)
			g.pieceAt(recordHeader{number: 1, total: 5, cut: 10}, g.mr.Base, ddp.Tag(g.mr.RKey), 'x')
		}},
		{"too-many-pieces", func(g *target) {
			g.pieceAt(recordHeader{number: 1, total: maxPieces + 1, cut: 1}, g.mr.Base, ddp.Tag(g.mr.RKey), 'x')
		}},
		{"no-number", func(g *target) {
			g.pieceAt(recordHeader{number: 0, total: 5, cut: 10}, g.mr.Base, ddp.Tag(g.mr.RKey), 'x')
		}},
		{"no-cut", func(g *target) {
			b := make([]byte, ddp.TaggedLen+5)
			(&ddp.Header{Op: ddp.Write, Last: true, Tag: ddp.Tag(g.mr.RKey), TO: g.mr.Base}).Put(b)
			g.feed(header{kind: kindRecord, record: recordHeader{number: 1, total: 5}}, b)
		}},
		{"a-send", func(g *target) {
			b := make([]byte, ddp.UntaggedLen+5)
			(&ddp.Header{Op: ddp.Send, Last: true, MSN: 1}).Put(b)
			g.feed(header{kind: kindRecord, record: recordHeader{number: 1, total: 5, cut: 10}}, b)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newTarget(t, 100)
			sent := g.keys.serial
			c.feed(g)
			if got := g.completions(); len(got) > 0 {
				t.Errorf("got completions %q", got)
			}
			if bytes.ContainsAny(g.region, "x") {
				t.Error("something was written")
			}
			if g.keys.serial != sent+1 {
				t.Errorf("%d datagrams were sent in reply, want one error message", g.keys.serial-sent)
			}
			g.peerKeys.incarnation = newIncarnation()
			if mr, err := g.Register(g.region, rdma.RemoteWrite); err == nil {
				g.pieceAt(recordHeader{number: 1, total: 5, cut: 10, id: 7}, mr.Base, ddp.Tag(mr.RKey), 'y')
			}
			if got := g.completions(); len(got) != 1 {
				t.Errorf("another peer is no longer served: %q", got)
			}
		})
	}
}

// TestWriteRecordInconsistentPieces checks that inconsistent pieces of one number are
// not mixed.
func TestWriteRecordInconsistentPieces(t *testing.T) {
	g := newTarget(t, 100)
	g.piece(1, 25, 0, 'a')
	g.pieceAt(recordHeader{number: 1, total: 25, cut: 10, index: 1, id: 1001}, g.mr.Base+50, ddp.Tag(g.mr.RKey), 'x')
	if got, want := g.completions(), []string{"record 1001 [0,10) of 25"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got completions %q, want %q", got, want)
	}
	if bytes.ContainsAny(g.region, "x") {
		t.Error("the other message was written")
	}
}
