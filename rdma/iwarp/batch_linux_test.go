//go:build !muster_portable

package iwarp

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// TestBatchGrowsWithBurst: what is sent together is never longer than what was sent before.
func TestBatchGrowsWithBurst(t *testing.T) {
	for _, v := range []struct {
		frame, messages int
		want            []int // messages sent together
	}{
		{8 << 10, 40, []int{1, 1, 2, 4, 8, 8, 8, 8}},
		{16 << 10, 20, []int{1, 1, 2, 4, 4, 4, 4}},
		{64, 64, []int{1, 1, 2, 4, 8, 16, 32}},
		{longHeld + 1, 4, []int{1, 1, 1, 1}},
	} {
		var b batch
		var got []int
		held := 0
		for range v.messages {
			held++
			if b.holding = b.delays(v.frame) && !b.enough(held*v.frame); !b.holding {
				b.burst += held * v.frame
				got, held = append(got, held), 0
			}
		}
		if !slices.Equal(got, v.want) || held != 0 {
			t.Errorf("frames of %d bytes are sent together like this: %v, and %d are left; want %v", v.frame, got, held, v.want)
		}
	}
}

// TestPauseEndsBurst: the first message after a pause is sent at once.
func TestPauseEndsBurst(t *testing.T) {
	b := batch{burst: 100, last: time.Second}
	if b.post(time.Second+burstGap, burstGap); !b.delays(50) {
		t.Error("a message of a burst is sent by itself")
	}
	if b.post(time.Second+2*burstGap+1, burstGap); b.delays(50) {
		t.Error("a message waits for others after a pause")
	}
	b = batch{burst: 100, holding: true, last: time.Second}
	if b.post(2*time.Second, burstGap); !b.enough(1) {
		t.Error("a message that was held back waits for more after a pause")
	}
}

// settledBurst is settled, on a machine that never pauses.
func settledBurst(t *testing.T, cfg Config) (a, b *end) {
	a, b = settled(t, cfg)
	a.dev.(*device).gap = time.Hour
	return a, b
}

// sendMore posts a message that may be held back, in memory that changes afterwards, and
// reports whether the socket has got anything.
func (e *end) sendMore(text []byte, flags rdma.Flags) (sent bool) {
	e.t.Helper()
	q := e.qp.(*queuePair)
	before := q.given()
	body := bytes.Clone(text)
	wr := rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline | flags, Body: rdma.MemOf(body), HeadLen: 2, Head: [rdma.HeadMax]byte{'h', ':'}}
	if n, err := e.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
		e.t.Fatalf("the queue pair does not take a message: %v", err)
	}
	clear(body)
	return q.given() > before
}

func (q *queuePair) given() uint64 {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	return q.out.given
}

// expectTexts waits for messages, in this order.
func (e *end) expectTexts(want [][]byte, ends ...*end) {
	e.t.Helper()
	pollUntil(e.t, fmt.Sprintf("%d messages have arrived", len(want)), func() bool { return len(e.got) >= len(want) }, ends...)
	for i, text := range want {
		if got := e.got[i].Data.Bytes(); !bytes.Equal(got, append([]byte("h:"), text...)) {
			e.t.Fatalf("message %d of %d is not what was posted: it has %d bytes", i, len(want), len(got))
		}
	}
	e.got = nil
}

func textOf(i, n int) []byte { return bytes.Repeat([]byte{byte(i + 1)}, n) }

// TestBurstIsSentTogether posts messages without a Poll. The peer receives all of them, in
// order and as posted, with every kind of framing; and nothing is held back of an idle connection.
func TestBurstIsSentTogether(t *testing.T) {
	for name, cfg := range map[string]Config{
		"plain": {Served: true, NoCRC: true}, "summed": {Served: true}, "markers": {NoThread: true, Markers: true}, "encrypted": encrypted,
	} {
		for _, size := range []int{8, 1000, 8 << 10} {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				a, b := settledBurst(t, cfg)
				for round := range 3 {
					a.poll() // the burst begins
					var posted [][]byte
					var together []int
					for i := range 36 {
						posted = append(posted, textOf(i, size))
						if a.sendMore(posted[i], rdma.More) {
							together = append(together, i+1)
						}
						b.poll()
					}
					if len(together) == 0 || together[0] != 1 || len(together) > 9 {
						t.Errorf("the socket gets messages %v of a burst; want the first by itself, and later ones together", together)
					}
					b.expectTexts(posted, a, b)
					if a.dev.Caps().Urgent() {
						t.Error("a Poll has left messages held back")
					}
					combined := uint64(0)
					a.dev.Caps().Count(func(name rdma.Counter, v uint64) {
						if name == rdma.MessagesCombined {
							combined += v
						}
					})
					if most := uint64((round + 1) * 35); combined < most/2 || combined > most {
						t.Errorf("%d messages are counted as combined; want nearly %d", combined, most)
					}
				}
			})
		}
	}
}

// TestHeldMessagesLeave: whatever the user does next, messages that are held back are sent
// before it, or the device says that it needs a Poll.
func TestHeldMessagesLeave(t *testing.T) {
	for _, v := range []struct {
		name string
		next func(t *testing.T, a *end, posted [][]byte) [][]byte
	}{
		{"sleep", func(t *testing.T, a *end, posted [][]byte) [][]byte {
			if limit := a.cq.Arm(rdma.NotifyAny, time.Hour); limit > 0 {
				t.Errorf("the queue can sleep for %v with messages held back", limit)
			}
			a.poll()
			return posted
		}},
		{"close", func(_ *testing.T, a *end, posted [][]byte) [][]byte {
			_ = a.qp.Close()
			return posted
		}},
		{"message that goes at once", func(_ *testing.T, a *end, posted [][]byte) [][]byte {
			a.sendMore([]byte("now"), 0)
			return append(posted, []byte("now"))
		}},
		{"long message", func(_ *testing.T, a *end, posted [][]byte) [][]byte {
			a.sendMore(textOf(9, maxInline), rdma.More)
			return append(posted, textOf(9, maxInline))
		}},
		{"full queue", func(t *testing.T, a *end, posted [][]byte) [][]byte {
			for range 2 * defaultDepth {
				posted = append(posted, []byte("short"))
				a.sendMore(posted[len(posted)-1], rdma.More)
			}
			a.poll()
			return posted
		}},
	} {
		t.Run(v.name, func(t *testing.T) {
			a, b := settledBurst(t, Config{Served: true, NoCRC: true})
			a.poll()
			var posted [][]byte
			for i := range 3 {
				posted = append(posted, textOf(i, 4<<10))
				a.sendMore(posted[i], rdma.More)
			}
			if !a.dev.Caps().Urgent() || a.qp.Pending() != 1 {
				t.Fatalf("%d messages are pending; want the third of a burst held back", a.qp.Pending())
			}
			posted = v.next(t, a, posted)
			if a.dev.Caps().Urgent() {
				t.Error("messages are still held back")
			}
			b.expectTexts(posted, b)
		})
	}
}

// TestHeldMessagesOfBrokenConnection: they do not keep the owner polling.
func TestHeldMessagesOfBrokenConnection(t *testing.T) {
	a, b := settledBurst(t, Config{Served: true, NoCRC: true})
	a.poll()
	for i := range 3 {
		a.sendMore(textOf(i, 4<<10), rdma.More)
	}
	a.dev.(*device).mu.Lock()
	a.qp.(*queuePair).lose(rdma.StatusPeerGone)
	a.dev.(*device).mu.Unlock()
	if a.dev.Caps().Urgent() {
		t.Error("a connection that has ended holds messages back")
	}
	pollUntil(t, "the end of the connection is reported", func() bool { return len(a.ended) == 1 && len(b.ended) == 1 }, a, b)
}

// TestNothingHeldWithoutOwner: a device that nobody polls while the program computes holds
// nothing back.
func TestNothingHeldWithoutOwner(t *testing.T) {
	a, b := settledBurst(t, Config{NoCRC: true})
	a.poll()
	var posted [][]byte
	for i := range 20 {
		posted = append(posted, textOf(i, 100))
		if !a.sendMore(posted[i], rdma.More) {
			t.Fatalf("message %d of a burst is held back", i)
		}
	}
	b.expectTexts(posted, b)
}
