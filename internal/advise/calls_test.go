package advise

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/trace"
)

func TestShortMessagesBetweenAllRanks(t *testing.T) {
	all := Find(job4(func(r *trace.Rank) {
		for i := range int64(30) {
			step := 1 + int(i%3)
			e := call(r, "Sendrecv", "sendrecv", "a.go:1", i*10, i*10+10)
			e.Sends, e.Peer, e.From, e.Bytes, e.FromBytes = true, int32(r.Rank+step)%4, int32(r.Rank+4-step)%4, 8, 8
		}
	}))
	only(t, all, "short messages between all ranks, one by one", "a.go:1", 1-2./3)
	predicted(t, all[0], 300, 200)
}

func TestShortCollectivesInARow(t *testing.T) {
	all := Find(job4(func(r *trace.Rank) {
		for i := range int64(20) {
			call(r, "Allreduce", "collective", "a.go:1", i/10*1000+i%10*20, i/10*1000+i%10*20+10).Bytes = 8
		}
		call(r, "Finalize", "other", "a.go:2", 1190, 1200)
	}))
	only(t, all, "many short collectives", "a.go:1", 200./1200*.9)
	predicted(t, all[0], 1200, 1020)
}

func TestBarrierBeforeACollective(t *testing.T) {
	all := Find(job4(func(r *trace.Rank) {
		for i := range int64(2) {
			call(r, "Barrier", "collective", "a.go:1", i*1000, i*1000+100)
			call(r, "Allreduce", "collective", "a.go:2", i*1000+100, i*1000+300).Bytes = 8
		}
	}))
	only(t, all, "barrier before a collective", "a.go:1", 200./1300)
	predicted(t, all[0], 1300, 1100)
}

func TestRanksWithoutWork(t *testing.T) {
	all := Find(job4(func(r *trace.Rank) {
		for i := range int64(2) {
			begin := i*1000 + 900
			if r.Rank == 3 {
				begin = i * 1000
			}
			call(r, "Allreduce", "collective", "a.go:1", begin, i*1000+1000).Bytes = 8
		}
	}))
	if len(all) != 1 || all[0].Problem != "ranks without work" || all[0].Sites[0] != "a.go:1 (Allreduce)" {
		t.Fatalf("found %+v", all)
	}
	predicted(t, all[0], 2000, 2*675+200)
}

// Transfers that are started, and waited for after a computation.
func TestProposalsForTransfersBesideComputation(t *testing.T) {
	all := Propose(job4(func(r *trace.Rank) {
		other := int32(r.Rank ^ 1)
		if r.Rank%2 > 0 { // the index of a wait of one rank is not that of the other
			call(r, "Barrier", "other", "a.go:1", 0, 10)
		}
		from := call(r, "Irecv", "receive", "a.go:2", 10, 20)
		from.Starts, from.From, from.FromBytes, from.By = true, other, 1<<20, int32(len(r.Events))+1
		to := call(r, "Isend", "send", "a.go:3", 20, 30)
		to.Starts, to.Sends, to.Peer, to.Bytes, to.By = true, true, other, 1<<20, int32(len(r.Events))
		call(r, "WaitAll", "wait", "a.go:4", 500, 510)
	}))
	if len(all) != 2 || all[0].Value != "always" || all[1] != (Entry{"MUSTER_PROGRESS", "async", "8 transfers of long messages have computation beside them"}) {
		t.Errorf("proposed %+v", all)
	}
}

func TestProposals(t *testing.T) {
	all := Propose(job4(func(r *trace.Rank) {
		for i := range int64(8) {
			other := r.Rank ^ 2
			e := call(r, "Sendrecv", "sendrecv", "a.go:1", i*200, i*200+100)
			e.Sends, e.Peer, e.From, e.Bytes, e.FromBytes = true, int32(other), int32(other), 1<<19, 1<<19
			call(r, "Allreduce", "collective", "a.go:2", i*200+100, i*200+200).Bytes = 8
		}
		r.Host = "ab"[r.Rank/2 : r.Rank/2+1]
	}))
	has := map[string]int{}
	for _, e := range all {
		has[e.Name]++
	}
	if has[MapBy] != 1 || has["MUSTER_SPECULATE"] != 1 || has["MUSTER_COLLECTIVE"] != alternatives {
		t.Errorf("proposed %+v", all)
	}
}

func TestLateRanksAtALongCollective(t *testing.T) {
	all := Find(job4(func(r *trace.Rank) {
		for i := range int64(12) {
			at := i * 1000
			if int64(r.Rank) == i%4 {
				at += 400
			}
			call(r, "Alltoall", "collective", "a.go:1", at, i*1000+500).Bytes = longMessage
		}
	}))
	only(t, all, "late ranks at a collective", "a.go:1", 12*75./11500) // of 100, a quarter is the rank's own
	if want := "MUSTER_COLLECTIVE=alltoall=pap_direct starts"; len(all) > 0 && !strings.HasPrefix(all[0].Change, want) {
		t.Errorf("the change is %q, want %q", all[0].Change, want)
	}
}
