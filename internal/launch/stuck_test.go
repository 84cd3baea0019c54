package launch

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// board makes rows from waits; rows that nobody writes are absent.
func rowsOf(write func(b *pmi.Board), size int) []pmi.Row {
	b := pmi.NewBoard(size)
	write(b)
	return b.Snapshot(nil)
}

func nobody(int) string { return "" }

func TestDescribeWaits(t *testing.T) {
	now := time.Unix(1000, 0)
	ago := func(s int64) int64 { return (1000 - s) * 1e9 }
	rows := rowsOf(func(b *pmi.Board) {
		for r := range 4 {
			b.Waiting(r, pmi.WaitState{Op: "Recv", Comm: "world", Peer: 4, Tag: 7, Since: ago(12 - int64(r))})
		}
		b.Running(4)
		b.Waiting(5, pmi.WaitState{Op: "Recv", Comm: "rows", Peer: pmi.PeerAny, Tag: pmi.TagAny, Since: ago(3)})
		b.Waiting(6, pmi.WaitState{Op: "Ssend", Comm: "world", Peer: 7, Tag: 0, Sending: true, Since: ago(3)})
		b.Waiting(7, pmi.WaitState{Op: "Recv", Peer: 6, Tag: 1, Since: ago(3)})
		b.Waiting(8, pmi.WaitState{Op: "Allreduce", Comm: "world", Peer: pmi.PeerNone, Tag: pmi.TagNone, Since: ago(75)})
		b.Waiting(9, pmi.WaitState{Op: "Recv", Comm: "world", Peer: 11, Tag: 2, Since: ago(3)})
		b.Waiting(12, pmi.WaitState{Op: "Recv", Comm: "world", Peer: 12, Tag: 2, Since: ago(3)})
		b.Left(11)
	}, 13)
	want := []string{
		"ranks 0-3 wait in Recv from 4 tag 7 on comm world for 12 s",
		"rank 4 computes and is not waiting",
		"rank 5 waits in Recv from any rank any tag on comm rows for 3.0 s",
		"rank 6 waits in Ssend to 7 tag 0 on comm world for 3.0 s",
		"rank 7 waits in Recv from 6 tag 1 for 3.0 s",
		"rank 8 waits in Allreduce on comm world for 75 s",
		"rank 9 waits in Recv from 11 tag 2 on comm world for 3.0 s",
		"rank 10 has not joined the job",
		"rank 11 has finished",
		"rank 12 waits in Recv from 12 tag 2 on comm world for 3.0 s",
		"cycle: 6 waits for 7 waits for 6",
		"cycle: 12 waits for 12",
		"rank 9 waits for rank 11, which has finished",
	}
	if got := describeWaits(rows, nobody, now); !reflect.DeepEqual(got, want) {
		t.Errorf("the report is\n%s\nand should be\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	got := describeWaits(rows[:5], func(r int) string { return map[int]string{4: "exit status 1"}[r] }, now)
	if got[1] != "rank 4 has ended (exit status 1)" || got[2] != "rank 0 waits for rank 4, which has ended (exit status 1)" {
		t.Errorf("who waits for a rank that has ended must be told so:\n%s", strings.Join(got, "\n"))
	}
}

func TestLongReportsAreCut(t *testing.T) {
	rows := rowsOf(func(b *pmi.Board) {
		for r := range 500 {
			b.Waiting(r, pmi.WaitState{Op: "Recv", Peer: int32((r + 1) % 500), Tag: 0, Since: 1})
		}
	}, 500)
	got := describeWaits(rows, nobody, time.Unix(5, 0))
	if len(got) != maxStuckLines+2 || got[maxStuckLines] != "... and 460 more such lines" {
		t.Fatalf("500 different lines must be cut to %d: there are %d", maxStuckLines, len(got))
	}
	if c := got[maxStuckLines+1]; !strings.HasPrefix(c, "cycle: 0 waits for 1 ") || !strings.HasSuffix(c, "... waits for 0") || len(c) > 600 {
		t.Errorf("the cycle of 500 must be told in short: %s", c)
	}
}

func TestWaitCycles(t *testing.T) {
	for _, c := range []struct {
		peers []int32
		want  [][]int
	}{
		{[]int32{1, 2, 0}, [][]int{{0, 1, 2, 0}}},
		{[]int32{1, -1, 0}, nil},
		{[]int32{3, 0, 1, 2}, [][]int{{0, 3, 2, 1, 0}}},
		{[]int32{1, 2, 1, 1}, [][]int{{1, 2, 1}}},
		{[]int32{2, 3, 0, 1}, [][]int{{0, 2, 0}, {1, 3, 1}}},
		{[]int32{9, -2, 1}, nil},
	} {
		rows := rowsOf(func(b *pmi.Board) {
			for r, p := range c.peers {
				b.Waiting(r, pmi.WaitState{Op: "Recv", Peer: p})
			}
		}, len(c.peers))
		if got := waitCycles(rows, nobody); !reflect.DeepEqual(got, c.want) {
			t.Errorf("peers %v have cycles %v, got %v", c.peers, c.want, got)
		}
	}
}

func TestStuckWatch(t *testing.T) {
	b := pmi.NewBoard(3)
	gone := map[int]bool{}
	alive := func(r int) bool { return !gone[r] }
	w := stuckWatch{after: 10 * time.Second}
	at := time.Unix(100, 0)
	step := func(what string, seconds int, want bool) {
		t.Helper()
		at = at.Add(time.Duration(seconds) * time.Second)
		if _, got := w.look(pulseOf(b.Snapshot(nil), alive), at); got != want {
			t.Fatalf("%s: stuck is %v, should be %v", what, got, want)
		}
	}
	wait := func(r int, tag int32) { b.Waiting(r, pmi.WaitState{Op: "Recv", Peer: 0, Tag: tag}) }
	step("nobody has joined", 0, false)
	wait(0, 1)
	wait(1, 1)
	b.Running(2)
	step("one computes", 100, false)
	step("one still computes", 100, false)
	wait(2, 1)
	step("all wait, seen for the first time", 1, false)
	step("not long enough", 9, false)
	step("long enough", 1, true)
	step("told just now", 1, false)
	step("a period later again", 9, true)
	b.Running(0)
	wait(0, 2)
	step("one has moved in between", 10, false)
	step("and nothing since", 10, true)
	b.Running(1)
	gone[1] = true
	step("one has gone", 1, false)
	step("the dead do not count", 10, true)
	b.Left(2)
	step("one has finished", 1, false)
	step("nor do the finished", 10, true)
	b.Left(0)
	step("all have finished", 1, false)
	step("and nobody waits", 100, false)
}
