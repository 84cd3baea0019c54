package sim

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/trace"
)

// recorded returns a trace of two ranks. Rank 0 computes for 5 µs and sends 8 bytes, which
// rank 1 receives after the barrier that follows. Rank 1 has posted a receive before the
// barrier whose message rank 0 sends after it. At the end is a sum.
func recorded() *trace.Trace {
	call := func(name, kind string, begin int64) trace.Event {
		return trace.Event{Label: &trace.Label{Name: name, Kind: kind}, Begin: begin, End: begin + 1000, Peer: trace.None, From: trace.None, By: -1}
	}
	send := func(begin int64, tag int32) trace.Event {
		e := call("Send", "send", begin)
		e.Peer, e.Tag, e.Bytes, e.Sends = 1, tag, 8, true
		return e
	}
	recv := func(name string, begin int64, tag int32) trace.Event {
		e := call(name, "receive", begin)
		e.From, e.FromTag, e.FromBytes = 0, tag, 8
		return e
	}
	early := recv("Irecv", 0, 2)
	early.Starts, early.By = true, 3
	sum := call("Allreduce", "collective", 9000)
	sum.Bytes = 8
	one, two := &trace.Rank{Rank: 0, Comms: []trace.Comm{{Context: 1}}}, &trace.Rank{Rank: 1, Comms: []trace.Comm{{Context: 1}}}
	one.Events = []trace.Event{send(5000, 1), call("Barrier", "collective", 6000), send(7000, 2), call("Split", "collective", 8000), sum}
	two.Events = []trace.Event{early, call("Barrier", "collective", 1000), recv("Recv", 7000, 1), call("Wait", "wait", 8000), sum}
	for _, k := range []*trace.Rank{one, two} {
		k.Number()
	}
	return &trace.Trace{Ranks: []*trace.Rank{one, two}}
}

func TestReplay(t *testing.T) {
	for _, c := range []struct {
		ranks, nodes int
		messages     int
	}{{2, 1, 2}, {6, 3, 6}, {6, 2, 6}} {
		nodes := Layout(c.ranks, c.nodes, 1)
		x, err := Replay(recorded(), plain(), c.ranks, nodes)
		if err != nil {
			t.Fatal(err)
		}
		if x.Recorded != 2 || x.Collectives != 2 || x.Messages != c.messages || len(x.Left) != 1 || !strings.Contains(x.Left[0], "Split") {
			t.Errorf("%d ranks: %+v", c.ranks, x)
		}
		y := simulate(t, Config{Machine: plain(), Calls: x.Calls, Path: true})
		var inside int64
		for _, call := range x.Calls {
			if call.Algorithm != nil {
				s := simulate(t, Config{Machine: plain(), Calls: []Call{call}})
				inside += s.Stats.Messages()
			}
		}
		if got := y.Stats.Messages() - inside; got != int64(c.messages) {
			t.Errorf("%d ranks: %d messages besides those of collectives, want %d", c.ranks, got, c.messages)
		}
		if y.Last < 5 || y.Last > 20 {
			t.Errorf("%d ranks: %v µs; rank 0 computes for 5 µs, and recorded times of calls must not count", c.ranks, y.Last)
		}
	}
	if _, err := Replay(recorded(), plain(), 5, nil); err == nil || !strings.Contains(err.Error(), "multiple of 2") {
		t.Errorf("5 ranks of a trace of 2: %v", err)
	}
	odd := recorded()
	odd.Ranks[1].Events[1].Name = "Bcast"
	if _, err := Replay(odd, plain(), 2, nil); err == nil || !strings.Contains(err.Error(), "barrier on rank 0 and bcast on rank 1") {
		t.Errorf("ranks with different collectives: %v", err)
	}
}

// TestReplayParts checks that a collective on some of the ranks becomes messages of a section.
func TestReplayParts(t *testing.T) {
	var ranks []*trace.Rank
	for r := range 4 {
		k := &trace.Rank{Rank: r, Comms: []trace.Comm{{Context: 1}, {Context: 2, Ranks: []int{r % 2, r%2 + 2}}}}
		k.Events = []trace.Event{{Label: &trace.Label{Name: "Allreduce", Kind: "collective"}, Comm: 1, Bytes: 8, Peer: trace.None, From: trace.None, By: -1, Begin: int64(r), End: 10}}
		k.Number()
		ranks = append(ranks, k)
	}
	x, err := Replay(&trace.Trace{Ranks: ranks}, plain(), 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	if y := simulate(t, Config{Machine: plain(), Calls: x.Calls}); x.Collectives != 0 || y.Stats.Messages() != 8 {
		t.Errorf("sums of two ranks each: %d messages, want 8 in two copies of two pairs; %+v", y.Stats.Messages(), x)
	}
}

func TestMachineChooses(t *testing.T) {
	s := shape(coll.Allreduce, 1<<16, 8, Layout(1<<16, 1<<10, 2))
	c, err := Default().Choose(&s)
	if err != nil || c.Algorithm.Name == "ring" || c.Algorithm.Name == "direct" {
		t.Errorf("8 bytes among 65536 ranks: %v, %v; want one with a logarithmic number of messages", c.Algorithm, err)
	}
}
