package pmi

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestBoardWaiting(t *testing.T) {
	waits := []WaitState{
		{Op: "Recv", Comm: "world", Peer: 4, Tag: 7, Context: 3, Since: 11},
		{Op: "Send", Comm: "world", Peer: 0, Tag: 0, Sending: true, Since: 12},
		{Op: "Recv", Comm: "rows", Peer: PeerAny, Tag: TagAny, Context: 1 << 31, Since: 13},
		{Op: "Allreduce", Comm: "", Peer: PeerNone, Tag: TagNone, Since: 14},
		{Op: strings.Repeat("o", opBytes), Comm: strings.Repeat("c", commBytes), Peer: 1<<31 - 1, Tag: 1<<31 - 1, Since: 15},
	}
	b := NewBoard(2)
	if r := b.Row(1); r.State != RowAbsent {
		t.Fatalf("a fresh row must be absent, is %+v", r)
	}
	for i, w := range waits {
		before := b.Row(1).Progress
		b.Waiting(1, w)
		r := b.Row(1)
		if r.State != RowWaiting || r.Wait != w {
			t.Errorf("wait %d must be read as it was written: got %+v, want %+v", i, r.Wait, w)
		}
		if r.Progress == before {
			t.Errorf("wait %d is new and must count as progress", i)
		}
	}
	b.Waiting(1, WaitState{Op: strings.Repeat("x", 100), Comm: strings.Repeat("y", 100)})
	if w := b.Row(1).Wait; len(w.Op) != opBytes || len(w.Comm) != commBytes || w.Since == 0 {
		t.Errorf("long names must be truncated and the time set: %+v", w)
	}
	b.Running(1)
	if r := b.Row(1); r.State != RowRunning {
		t.Errorf("the state must be running, is %+v", r)
	}
	if r := b.Row(0); r.State != RowAbsent || r.Progress != 0 {
		t.Errorf("row 0 must be untouched, is %+v", r)
	}
}

func TestBoardRepeatedWait(t *testing.T) {
	b := NewBoard(1)
	w := WaitState{Op: "Recv", Peer: 3, Tag: 1, Since: 100}
	b.Waiting(0, w)
	was := b.Row(0)
	w.Since = 200
	b.Waiting(0, w)
	if r := b.Row(0); r != was {
		t.Errorf("the same wait again must change nothing: %+v became %+v", was, r)
	}
	w.Other = MakeUnreceived(2, 5)
	was.Wait.Other = w.Other
	b.Waiting(0, w)
	if r := b.Row(0); r != was {
		t.Errorf("another message must change nothing else: %+v, want %+v", r, was)
	}
	b.Running(0)
	after := b.Row(0).Progress
	b.Running(0)
	if b.Row(0).Progress != after {
		t.Error("Running of a running rank must change nothing")
	}
	b.Waiting(0, w)
	if r := b.Row(0); r.Wait.Since != 200 || r.Progress == after {
		t.Errorf("the same wait after a run is a new one: %+v", r)
	}
}

func TestBoardPulse(t *testing.T) {
	b := NewBoard(2)
	expect := func(want bool, when string) {
		t.Helper()
		if _, blocked := b.Pulse(); blocked != want {
			t.Errorf("%s: blocked is %v, want %v", when, blocked, want)
		}
	}
	b.MarkLeft(1)
	b.Running(0)
	expect(false, "one rank runs")
	b.Waiting(0, WaitState{Op: "Recv"})
	expect(true, "one rank waits, the other has left")
	b.WaitingBounded(0, 1)
	b.WaitingBounded(0, 1)
	b.WaitingBounded(0, -1)
	expect(false, "a goroutine waits with a context that can end")
	b.WaitingBounded(0, -1)
	expect(true, "the context has ended, another goroutine waits")
}

func TestBoardDeaths(t *testing.T) {
	b := NewBoard(3)
	if _, ok := b.Death(0); ok || b.Deaths() != 0 {
		t.Fatal("a new board must have no deaths")
	}
	deaths := []Death{
		{2, "node7", "killed by SIGKILL"},
		{0, strings.Repeat("h", hostBytes), strings.Repeat("s", statusBytes)},
		{1, "", "exit status 3"},
	}
	for i, d := range deaths {
		b.MarkDead(d)
		b.MarkDead(Death{d.Rank, "x", "a second death"})
		if b.Deaths() != uint32(i+1) {
			t.Fatalf("after %d ranks died the count is %d", i+1, b.Deaths())
		}
		if got, ok := b.Dead(d.Rank); !ok || got != d {
			t.Errorf("rank %d: got %+v, want %+v", d.Rank, got, d)
		}
	}
	for i, d := range deaths {
		if got, ok := b.Death(i); !ok || got != d {
			t.Errorf("death %d must be %+v, in order of time; got %+v", i, d, got)
		}
	}
	if _, ok := b.Death(3); ok {
		t.Error("there is no fourth death among three ranks")
	}
}

// Every rank can write to the board. Invalid contents must not crash the launcher.
func TestDamagedBoard(t *testing.T) {
	b := NewBoard(2)
	atomic.StoreUint64(&b.words[wordDeaths], 1<<31)
	b.MarkDead(Death{1, "here", "exit status 1"})
	if _, ok := b.Dead(1); !ok {
		t.Error("the death was not written")
	}
	atomic.StoreUint64(&b.row(0)[rowNthDeath], 1<<40)
	if d, ok := b.Death(0); ok {
		t.Errorf("a death of a nonexistent rank is reported: %+v", d)
	}
	atomic.StoreUint64(&b.row(0)[rowState], 1<<63|99)
	atomic.StoreUint64(&b.row(0)[rowPeerTag], 1<<63)
	b.Row(0)
}

func TestNilBoard(t *testing.T) {
	var b *Board
	b.Waiting(0, WaitState{Op: "Recv"})
	b.Running(0)
	b.MarkLeft(0)
	b.MarkDead(Death{Rank: 0})
	if _, ok := b.Dead(0); ok || b.Deaths() != 0 || b.Size() != 0 || len(b.Snapshot(nil)) != 0 || b.Close() != nil {
		t.Error("a nil board must accept every call and be empty")
	}
	if r := NewBoard(1).Row(5); r.State != RowAbsent {
		t.Errorf("a rank outside the board must read as absent, is %+v", r)
	}
}

func TestBoardCallsDoNotAllocate(t *testing.T) {
	b := NewBoard(4)
	var deaths uint32
	if n := testing.AllocsPerRun(100, func() {
		b.Waiting(2, WaitState{Op: "Recv", Comm: "world", Peer: 1, Tag: 5})
		b.Running(2)
		deaths += b.Deaths()
	}); n != 0 {
		t.Errorf("a rank's calls must not allocate; they did %v times", n)
	}
}

// A reader must never see one wait's peer with another's tag.
func TestBoardRowIsConsistent(t *testing.T) {
	b := NewBoard(1)
	const rounds = 5000
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := int32(1); i <= rounds; i++ {
			b.Waiting(0, WaitState{Op: "Recv", Peer: i, Tag: i, Context: uint32(i), Since: int64(i)})
			// A rank computes between two waits, and a reader needs such a gap.
			for start := time.Now(); time.Since(start) < 2*time.Microsecond; {
			}
		}
	}()
	for {
		r := b.Row(0)
		if w := r.Wait; r.State == RowWaiting && (w.Tag != w.Peer || w.Context != uint32(w.Peer) || w.Since != int64(w.Peer)) {
			t.Fatalf("a torn row was read: %+v", w)
		}
		if r.Wait.Peer == rounds {
			break
		}
	}
	wg.Wait()
}

func TestBoardConcurrentDeaths(t *testing.T) {
	const n = 50
	b := NewBoard(n)
	var wg sync.WaitGroup
	for rank := range n {
		wg.Go(func() { b.MarkDead(Death{Rank: rank, Status: "exit status 1"}) })
	}
	wg.Wait()
	seen := map[int]bool{}
	for i := range n {
		d, ok := b.Death(i)
		if !ok || seen[d.Rank] {
			t.Fatalf("death %d is missing or reported twice: %+v", i, d)
		}
		seen[d.Rank] = true
	}
}

func BenchmarkBoardWaitingRunning(bm *testing.B) {
	b := NewBoard(1)
	for bm.Loop() {
		b.Waiting(0, WaitState{Op: "Recv", Comm: "world", Peer: 1, Tag: 5})
		b.Running(0)
	}
}
