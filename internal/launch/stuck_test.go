//go:build !windows

package launch

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// rowsOf returns the rows of a board after write; rows not written are absent.
func rowsOf(write func(b *pmi.Board), size int) (rows []rankRow) {
	b := pmi.NewBoard(size)
	write(b)
	for _, r := range b.Snapshot(nil) {
		rows = append(rows, rankRow{Row: r})
	}
	return rows
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
		b.Waiting(7, pmi.WaitState{Op: "Recv", Peer: 6, Tag: 1, Since: ago(3), Other: pmi.MakeUnreceived(0, 8)})
		b.Waiting(8, pmi.WaitState{Op: "Allreduce", Comm: "world", Peer: pmi.PeerNone, Tag: pmi.TagNone, Since: ago(75)})
		b.Waiting(9, pmi.WaitState{Op: "Recv", Comm: "world", Peer: 11, Tag: 2, Since: ago(3)})
		b.Waiting(12, pmi.WaitState{Op: "Recv", Comm: "world", Peer: 12, Tag: 2, Since: ago(3)})
		b.MarkLeft(11)
	}, 13)
	want := []string{
		"ranks 0-3 wait in Recv from 4 tag 7 on comm world for 12 s",
		"rank 4 is not waiting",
		"rank 5 waits in Recv from any rank any tag on comm rows for 3.0 s",
		"rank 6 waits in Ssend to 7 tag 0 on comm world for 3.0 s",
		"rank 7 waits in Recv from 6 tag 1 (a message from 0 with tag 8 was not received) for 3.0 s",
		"rank 8 waits in Allreduce on comm world for 75 s",
		"rank 9 waits in Recv from 11 tag 2 on comm world for 3.0 s",
		"rank 10 has not joined the job",
		"rank 11 has finished",
		"rank 12 waits in Recv from 12 tag 2 on comm world for 3.0 s",
		"cycle: 6 waits for 7 waits for 6",
		"cycle: 12 waits for 12",
		"rank 9 waits for rank 11, which has finished",
	}
	if got := describeWaits(rows, nil, nobody, now); !reflect.DeepEqual(got, want) {
		t.Errorf("the report is\n%s\nand should be\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	got := describeWaits(rows[:5], nil, func(r int) string { return map[int]string{4: "exit status 1"}[r] }, now)
	if got[1] != "rank 4 has ended (exit status 1)" || got[2] != "ranks 0-3 wait for rank 4, which has ended (exit status 1)" {
		t.Errorf("a wait for a rank that has ended must be reported as such:\n%s", strings.Join(got, "\n"))
	}
}

func TestDifferentCollectivesAreConcluded(t *testing.T) {
	rows := rowsOf(func(b *pmi.Board) {
		for r, op := range []string{"Barrier (a.go:10)", "Bcast (a.go:14)", "Barrier (a.go:10)", "Bcast (a.go:14)"} {
			b.Waiting(r, pmi.WaitState{Op: op, Comm: "world", Peer: pmi.PeerNone, Tag: pmi.TagNone, Context: 1, Since: 1})
		}
		b.Waiting(4, pmi.WaitState{Op: "Allreduce", Comm: "rows", Peer: pmi.PeerNone, Tag: pmi.TagNone, Context: 3, Since: 1})
		b.Waiting(5, pmi.WaitState{Op: "Recv", Comm: "world", Peer: 0, Tag: 7, Context: 1, Since: 1})
	}, 6)
	got := describeWaits(rows, nil, nobody, time.Unix(5, 0))
	const want = "ranks 0,2 are in Barrier (a.go:10), ranks 1,3 in Bcast (a.go:14): different collectives"
	if n := len(got); n != 5 || got[n-1] != want {
		t.Errorf("the conclusion is\n%s\nand should be\n%s", strings.Join(got, "\n"), want)
	}
}

// Ranks that wait for one in Finalize wait for ever, in whatever call.
func TestWaitForRankInFinalize(t *testing.T) {
	rows := rowsOf(func(b *pmi.Board) {
		for r := range 3 {
			b.Waiting(r, pmi.WaitState{Op: "Recv (a.go:10)", Comm: "world", Peer: 3, Tag: 7, Since: 1})
		}
		b.Waiting(3, pmi.WaitState{Op: "Finalize (a.go:5)", Comm: "world", Peer: 0, Tag: pmi.TagNone, Since: 1})
	}, 4)
	got := describeWaits(rows, nil, nobody, time.Unix(5, 0))
	const want = "ranks 0-2 wait in Recv (a.go:10) for rank 3, which has left in Finalize"
	if got[len(got)-1] != want {
		t.Errorf("the conclusion is\n%s\nand should be\n%s", strings.Join(got, "\n"), want)
	}
}

func TestLongStuckReport(t *testing.T) {
	rows := rowsOf(func(b *pmi.Board) {
		for r := range 500 {
			b.Waiting(r, pmi.WaitState{Op: "Recv", Peer: int32((r + 1) % 500), Tag: 0, Since: 1})
		}
	}, 500)
	got := describeWaits(rows, nil, nobody, time.Unix(5, 0))
	if len(got) != maxStuckLines+2 || got[maxStuckLines] != "... and 460 more such lines" {
		t.Fatalf("500 different lines must be limited to %d: there are %d", maxStuckLines, len(got))
	}
	if c := got[maxStuckLines+1]; !strings.HasPrefix(c, "cycle: 0 waits for 1 ") || !strings.HasSuffix(c, "... waits for 0") || len(c) > 600 {
		t.Errorf("the cycle of 500 must be reported in short: %s", c)
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
	step := func(what string, seconds int, want stuckStep) {
		t.Helper()
		for range seconds - 1 { // checks are more frequent than reports
			at = at.Add(time.Second)
			if _, got := w.look(pulseOf(b.Snapshot(nil), alive), at); got == stuckReport {
				t.Fatalf("%s: a report was due too early", what)
			}
		}
		at = at.Add(time.Duration(min(1, seconds)) * time.Second)
		if _, got := w.look(pulseOf(b.Snapshot(nil), alive), at); got != want {
			t.Fatalf("%s: the step is %v, should be %v", what, got, want)
		}
	}
	wait := func(r int, tag int32) { b.Waiting(r, pmi.WaitState{Op: "Recv", Peer: 0, Tag: tag}) }
	step("nobody has joined", 1, stuckNot)
	wait(0, 1)
	wait(1, 1)
	wait(2, 1)
	step("all wait, seen for the first time", 1, stuckNot)
	step("not long enough", 9, stuckNot)
	step("long enough", 1, stuckReport)
	step("reported just now", 1, stuckNot)
	step("a period later again", 9, stuckReport)
	b.Running(0)
	wait(0, 2)
	step("one made progress in between", 10, stuckNot)
	step("and none since", 1, stuckReport)
	b.Running(1)
	gone[1] = true
	step("one has exited", 1, stuckNot)
	step("exited ranks do not count", 10, stuckReport)
	b.MarkLeft(2)
	step("one has finished", 1, stuckNot)
	step("finished ranks do not count", 10, stuckReport)
	b.Running(0)
	wait(0, 3)
	gone[1] = false
	step("one waits, one does not", 1, stuckNot)
	step("a sample is due halfway", 5, stuckSoon)
	w.earlier = &sample{at: at}
	step("once", 1, stuckNot)
	step("and reported", 4, stuckReport)
	w.backOff()
	step("a computation is reported again after twice the time", 20, stuckReport)
	b.MarkLeft(0)
	b.MarkLeft(1)
	step("all have finished", 1, stuckNot)
	step("and nobody waits", 100, stuckNot)
}

func TestStuckWatchIgnoresStoppedTime(t *testing.T) {
	w := stuckWatch{after: 10 * time.Second}
	p := pulse{waiting: 2}
	at := time.Unix(100, 0)
	w.look(p, at)
	if _, got := w.look(p, at.Add(time.Hour)); got != stuckNot {
		t.Errorf("a launcher that was stopped for an hour must not report the job as stuck")
	}
}

func TestDescribeAwayRanks(t *testing.T) {
	now := time.Unix(1000, 0)
	ago := func(s int64) int64 { return (1000 - s) * 1e9 }
	waits := func(b *pmi.Board, rank int, peer int32) {
		b.Waiting(rank, pmi.WaitState{Op: "Recv", Comm: "world", Peer: peer, Tag: 7, Since: ago(12)})
	}
	// 0 waits for 1 waits for 2, which does not wait; 3 is in a barrier.
	rows := rowsOf(func(b *pmi.Board) {
		waits(b, 0, 1)
		waits(b, 1, 2)
		b.MarkJoined(2, 77)
		b.MarkStarted(2)
		b.Waiting(3, pmi.WaitState{Op: "Barrier", Comm: "world", Peer: pmi.PeerNone, Tag: pmi.TagNone, Since: ago(12)})
	}, 4)
	rows[2].Since = ago(12)
	host := func(int) string { return "h" }
	earlier := func(cpu time.Duration) *sample {
		all := make([]rankRow, 4)
		all[2].process = processState{77, 'S', cpu}
		return &sample{all, now.Add(-6 * time.Second)}
	}
	const conclusion = "rank 2 blocks all others, directly or through other ranks"
	for _, c := range []struct {
		process  processState
		want     string
		computes bool
	}{
		{processState{77, 'S', time.Second}, "rank 2 has not been in an MPI call for 12 s: it sleeps (pid 77 on h)", false},
		{processState{77, 'S', time.Second + 10*time.Millisecond}, "rank 2 has not been in an MPI call for 12 s: it sleeps (pid 77 on h)", false},
		{processState{77, 'T', 6 * time.Second}, "rank 2 has not been in an MPI call for 12 s: it is stopped (pid 77 on h); kill -CONT 77 lets it go on", false},
		{processState{77, 'D', time.Second}, "rank 2 has not been in an MPI call for 12 s: it waits for a disk or another device (pid 77 on h)", false},
		{processState{77, 'S', 6 * time.Second}, "rank 2 has not waited in an MPI call for 12 s: it computes or polls, with 5.0 s of CPU time in the last 6.0 s (pid 77 on h)", true},
		{processState{77, 'R', time.Second}, "rank 2 has not been in an MPI call for 12 s: it sleeps (pid 77 on h)", false},
	} {
		rows[2].process = c.process
		got, own, computes := describeAwayRanks(rows, earlier(time.Second), nobody, host, now)
		if !reflect.DeepEqual(got, []string{c.want, conclusion}) || !own[2] || len(own) != 1 || computes != c.computes {
			t.Errorf("a process of state %q must give\n%s\n%s\nand %v; got\n%s\nand %v", c.process.letter, c.want, conclusion, c.computes, strings.Join(got, "\n"), computes)
		}
	}
	if got, _, computes := describeAwayRanks(rows, nil, nobody, host, now); len(got) != 0 || !computes {
		t.Errorf("without an earlier sample it may compute: %q, %v", got, computes)
	}
	starved := earlier(time.Second)
	starved.rows[2].process.letter = 'R'
	if got, _, computes := describeAwayRanks(rows, starved, nobody, host, now); !computes {
		t.Errorf("a rank that gets no core is ready to compute: %q", got)
	}
	rows[2].Started = false
	if got, _, _ := describeAwayRanks(rows, starved, nobody, host, now); got[0] != "rank 2 is still in Init: it computes or polls, with 0.0 s of CPU time in the last 6.0 s (pid 77 on h)" {
		t.Errorf("a rank that is being started is in an MPI call: %q", got)
	}
	// A waiting rank can be stopped too. Ranks that wait for each other, or for a finished
	// rank, do not wait for rank 2.
	rows[2].process = processState{77, 'S', time.Second}
	rows[3].process = processState{78, 'T', 0}
	got, _, _ := describeAwayRanks(rows, earlier(time.Second), nobody, host, now)
	if len(got) != 3 || got[1] != "rank 3 is stopped (pid 78 on h); kill -CONT 78 lets it go on" ||
		got[2] != "ranks 2-3 block all others, directly or through other ranks" {
		t.Errorf("a rank that is stopped while it waits must be named: %q", got)
	}
	rows[1].Wait.Peer = 0
	if ranks := findAwaited(rows, nobody); ranks != nil {
		t.Errorf("ranks 0 and 1 wait for each other, not for %v", ranks)
	}
	rows[1].Wait.Peer = 3
	rows[3].State = pmi.RowLeft
	if ranks := findAwaited(rows, nobody); ranks != nil {
		t.Errorf("ranks 0 and 1 wait for one that has finished, not for %v", ranks)
	}
}
