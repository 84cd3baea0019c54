package advise

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/trace"
)

// world is the communicator of all ranks.
var world = []trace.Comm{{Name: "world"}}

// job4 returns a trace of four ranks with the calls that add appends.
func job4(add func(r *trace.Rank)) *trace.Trace {
	t := &trace.Trace{}
	for i := range 4 {
		r := &trace.Rank{Rank: i, Host: "a", Comms: world}
		add(r)
		r.Number()
		t.Ranks = append(t.Ranks, r)
	}
	return t
}

func call(r *trace.Rank, name, kind, site string, begin, end int64) *trace.Event {
	r.Events = append(r.Events, trace.Event{Label: &trace.Label{Name: name, Kind: kind, Site: site}, Begin: begin, End: end, Peer: trace.None, From: trace.None, By: -1})
	return &r.Events[len(r.Events)-1]
}

func send(r *trace.Rank, to, bytes int, site string, begin, end int64) {
	e := call(r, "Send", "send", site, begin, end)
	e.Sends, e.Peer, e.Bytes = true, int32(to), bytes
}

func recv(r *trace.Rank, from, bytes int, site string, begin, end int64) {
	e := call(r, "Recv", "receive", site, begin, end)
	e.Peer, e.From, e.Bytes, e.FromBytes = int32(from), int32(from), bytes, bytes
}

func only(t *testing.T, all []Finding, problem, site string, gain float64) {
	t.Helper()
	if len(all) != 1 || all[0].Problem != problem || !strings.HasPrefix(strings.Join(all[0].Sites, ""), site) || all[0].Gain < gain-.001 || all[0].Gain > gain+.001 {
		t.Errorf("found %+v, want only %q at %s with a gain of %.3f", all, problem, site, gain)
	}
}

// predicted checks a prediction in ns. All these traces are replayed exactly.
func predicted(t *testing.T, f Finding, now, then float64) {
	t.Helper()
	p := f.Prediction
	if p == nil || math.Abs(p.Now*1e9-now) > .1 || math.Abs(p.Then*1e9-then) > .1 || p.ReplayError > 1e-9 {
		t.Errorf("predicted %+v, want %v ns now, %v ns then", p, now, then)
	}
}

func TestImbalanceIsTheDistanceFromTheMean(t *testing.T) {
	tr := job4(func(r *trace.Rank) {
		for i := range int64(10) {
			at := i * 1000
			if r.Rank == 2 {
				at += 400 // of 4 ranks: the mean is 100
			}
			call(r, "Allreduce", "collective", "a.go:1", at, i*1000+500)
		}
	})
	only(t, Find(tr), "load imbalance", "a.go:1", 10*300./9500)
	f := Find(tr)[0]
	if !slices.Equal(f.Ranks, []int{2}) {
		t.Errorf("the late rank is %v", f.Ranks)
	}
	predicted(t, f, 9500, 6500)
	if times := f.Times(tr, 19); times[0] < .79 || times[0] > .81 || times[1] > 0 { // three ranks 500 of 500, one 100
		t.Errorf("shares of time at the call site: %v", times)
	}
}

func TestRanksLateByChanceAreNotImbalance(t *testing.T) {
	if all := Find(job4(func(r *trace.Rank) {
		for i := range int64(12) {
			at := i * 1000
			if int64(r.Rank) == i%4 {
				at += 400
			}
			call(r, "Allreduce", "collective", "a.go:1", at, i*1000+500)
		}
	})); len(all) > 0 {
		t.Errorf("found %+v", all)
	}
}

// Two ranks of equal work: in a few calls one of them is often the last each time.
func TestFewLateCallsAreNotImbalance(t *testing.T) {
	late := func(calls int64) []Finding {
		tr := job4(func(r *trace.Rank) {
			for i := range calls {
				call(r, "Allreduce", "collective", "a.go:1", i*1000+int64(r.Rank)*400, i*1000+500)
			}
		})
		tr.Ranks = tr.Ranks[:2]
		return Find(tr)
	}
	if all := late(8); len(all) > 0 {
		t.Errorf("found %+v in 8 calls", all)
	}
	if all := late(12); len(all) != 1 || all[0].Problem != "load imbalance" {
		t.Errorf("found %+v in 12 calls", all)
	}
}

func TestSerialSendsOfARoot(t *testing.T) {
	only(t, Find(job4(func(r *trace.Rank) {
		for i := range int64(3) {
			send(r, 1+int(i), 100, "a.go:1", i*10, i*10+10)
		}
		if r.Rank > 0 {
			r.Events = nil
			recv(r, 0, 100, "a.go:2", int64(r.Rank)*10-10, int64(r.Rank)*10)
		}
	})), "message to each rank, one by one", "a.go:1", 1-2./3)
}

func TestBurst(t *testing.T) {
	all := Find(job4(func(r *trace.Rank) {
		for i := range int64(20) {
			if r.Rank == 0 {
				send(r, 1, 8, "a.go:1", i*10, i*10+5)
			}
			if r.Rank == 1 {
				recv(r, 0, 8, "a.go:2", i*10, i*10+10)
			}
		}
	}))
	only(t, all, "many short messages", "a.go:1", 195./200*19/20)
	predicted(t, all[0], 200, 100) // 19 times 5 between the sends, and one message
}

func TestWaitThatAComputationFollows(t *testing.T) {
	all := Find(job4(func(r *trace.Rank) {
		switch r.Rank {
		case 0:
			send(r, 1, 1<<20, "a.go:1", 0, 10)
		case 1:
			recv(r, 0, 1<<20, "a.go:2", 0, 100)
			call(r, "Barrier", "other", "a.go:3", 160, 200)
		}
	}))
	only(t, all, "wait without computation", "a.go:2", 60./200)
	predicted(t, all[0], 200, 140)
}

func TestLateReceiveCountsTheDifference(t *testing.T) {
	tr := func(late int64) *trace.Trace {
		return job4(func(r *trace.Rank) {
			switch r.Rank {
			case 0:
				send(r, 1, 1<<20, "a.go:1", 0, 250)
				call(r, "Barrier", "other", "a.go:3", 250, 350)
				recv(r, 1, 1<<20, "a.go:2", 350, 400)
			case 1:
				recv(r, 0, 1<<20, "a.go:2", late, 250)
				send(r, 0, 1<<20, "a.go:1", 250, 400)
				call(r, "Barrier", "other", "a.go:3", 400, 400)
			}
		})
	}
	only(t, Find(tr(150)), "receive posted late", "a.go:2", 50./400)
	predicted(t, Find(tr(150))[0], 400, 250)
	if all := Find(tr(100)); len(all) > 0 {
		t.Errorf("each waits for the other as long: %+v", all)
	}
}

func TestPlacement(t *testing.T) {
	tr := job4(func(r *trace.Rank) {
		other := (r.Rank + 2) % 4
		for i := range int64(8) {
			send(r, other, 1<<19, "a.go:1", i*100, i*100+100)
			r.Events[len(r.Events)-1].Kind = "sendrecv"
			e := &r.Events[len(r.Events)-1]
			e.From, e.FromBytes = int32(other), 1<<19
		}
	})
	for i, r := range tr.Ranks {
		r.Host = "ab"[i/2 : i/2+1]
	}
	all := Find(tr)
	i := slices.IndexFunc(all, func(f Finding) bool { return f.Problem == "placement of ranks" })
	if i < 0 || all[i].Gain < .99 || !strings.HasSuffix(all[i].Change, "0,2 | 1,3") && !strings.HasSuffix(all[i].Change, "1,3 | 0,2") {
		t.Errorf("found %+v", all)
	}
}

func TestTextNamesEverything(t *testing.T) {
	tr := job4(func(r *trace.Rank) { call(r, "Barrier", "collective", "", 0, 100) })
	if got, want := Text(tr, nil), "4 ranks on 1 host(s), 100ns from the end of Init to the end of the last call, 100ns of it from the first call\nnothing to change that would save 1 % of the time\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got := strings.Split(Text(tr, []Finding{{Problem: "a problem", Sites: []string{"x.go:1 (F)"}, Ranks: []int{3}, Gain: .25, Evidence: "what", Change: "change", Prediction: &Prediction{2, 1.5, .01, 1}}}), "\n")[1:]
	if want := []string{"", "1  a problem, up to 25 % of the run time", "   where   x.go:1 (F)", "   ranks   3", "   seen    what", "   change  change", "   time    2s now, 1.5s predicted (a replay without the change has an error of 1.0 %)", ""}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
