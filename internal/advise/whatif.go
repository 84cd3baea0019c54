package advise

// Prediction: the trace is replayed (replay.go) with a change (change.go). Each rank computes and
// calls as recorded. A call ends when what it waits for is there, and these dependencies are kept
// instead of recorded times:
//
//	receive      the message was sent (and, if it is long, the receive posted) and has passed the
//	             ports of both hosts (ports.go): then it takes as long as recorded, or as long as
//	             such messages take if it was hidden
//	long send    the same
//	collective   the last of the ranks that the call needs has entered it
//
// Without a change the replay gives the recorded times, but for messages that clocks of two hosts
// show to be received before they were sent.

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/trace"
)

// mostReplayed bounds the calls that are replayed, for memory. Of longer programs it is the first
// calls of each rank.
const mostReplayed = 1 << 19

// whatIf is a program that can be replayed. Times are in ns.
type whatIf struct {
	*job
	steps     [][]step
	transfers []transfer
	groups    [][]trace.At // collectives
	hosts     []int        // by rank
	usual     map[class]float64
	perByte   float64 // time on a port
	unknown   bool    // the trace does not show what a change brings
}

// step is a call of a rank.
type step struct {
	compute float64 // from the end of the previous call until this one
	inside  float64 // computation between the start of what it waits for and the wait
	tail    float64 // from when nothing is waited for until its end
	ahead   bool    // its receive is posted before compute
	deps    []dep
	group   int32   // -1: none
	after   float64 // from when the collective is complete
	out, in int32   // the transfers of which it is the send or the receive; -1: none
}

// dep is a transfer that a call waits for, and for some time then.
type dep struct {
	transfer int32
	time     float64
}

// transfer is a message on its way. It begins when both calls have begun.
type transfer struct {
	send, start trace.At
	from, to    int     // hosts
	onPort      float64 // time on each port that it passes
	class       class
}

// class is messages that should take equally long.
type class struct {
	far bool
	log int // of the length
}

// newWhatIf returns the recorded program.
func newWhatIf(j *job) *whatIf {
	w := &whatIf{job: j}
	for _, k := range j.Trace.Ranks {
		steps, busy := make([]step, len(k.Events)), 0.0
		for i := range k.Events {
			e := &k.Events[i]
			steps[i] = step{compute: float64(e.Begin) - busy, group: -1, out: -1, in: -1}
			busy = max(busy, float64(e.End))
		}
		w.steps = append(w.steps, steps)
	}
	w.hosts, _ = j.Trace.Hosts()
	w.perByte = w.portTime()
	for _, m := range j.Messages {
		w.addMessage(m)
	}
	w.addDeps()
	for _, calls := range j.Collectives {
		w.addCollective(calls)
	}
	return w
}

// completing returns the call that saw the operation of a call complete.
func (w *whatIf) completing(a trace.At) trace.At {
	if e := w.event(a); e.Starts && e.By >= 0 {
		return trace.At{Rank: a.Rank, Event: e.By}
	}
	return a
}

// classOf returns the class of a message.
func (w *whatIf) classOf(m trace.Message) class {
	return class{w.hosts[m.Send.Rank] != w.hosts[m.Recv.Rank], bits.Len(uint(w.event(m.Send).Bytes))}
}

// startOf returns the call that must have begun beside the send before a message is transferred.
func (w *whatIf) startOf(m trace.Message) trace.At {
	if w.event(m.Send).Bytes < longMessage {
		return m.Send
	}
	return m.Recv
}

func (w *whatIf) addMessage(m trace.Message) {
	x := transfer{send: m.Send, start: w.startOf(m), from: w.hosts[m.Send.Rank], to: w.hosts[m.Recv.Rank], class: w.classOf(m)}
	x.onPort = w.perByte * float64(w.event(m.Send).Bytes)
	w.steps[m.Send.Rank][m.Send.Event].out = int32(len(w.transfers))
	if x.start == m.Recv {
		w.steps[m.Recv.Rank][m.Recv.Event].in = int32(len(w.transfers))
	}
	w.transfers = append(w.transfers, x)
}

// ready returns when a recorded transfer could begin.
func (w *whatIf) ready(x *transfer) int64 {
	return max(w.event(x.send).Begin, w.event(x.start).Begin)
}

// addDeps makes calls wait for transfers, as long as they have after these passed the ports. Of
// a hidden one that is not known: it takes at most as long as others do.
func (w *whatIf) addDeps() {
	passed := w.passRecorded()
	samples := map[class][]float64{}
	for i, m := range w.Messages {
		x, done := &w.transfers[i], w.event(w.completing(m.Recv))
		if ready := w.ready(x); ready >= done.Begin && ready < done.End {
			samples[x.class] = append(samples[x.class], float64(done.End)-passed[i])
		}
	}
	w.usual = map[class]float64{}
	for c, all := range samples {
		slices.Sort(all)
		w.usual[c] = all[len(all)/2]
	}
	for i, m := range w.Messages {
		x := &w.transfers[i]
		recv, send := w.completing(m.Recv), w.completing(m.Send)
		if w.event(m.Send).Begin <= w.event(recv).End {
			w.addDep(recv, i, passed[i])
		}
		if x.start == m.Recv && w.event(m.Recv).Begin <= w.event(send).End && w.event(m.Send).Kind != "sendrecv" {
			w.addDep(send, i, passed[i])
		}
	}
	for r, k := range w.Trace.Ranks {
		for i := range k.Events {
			s, e := &w.steps[r][i], &k.Events[i]
			ready := float64(e.Begin)
			for _, d := range s.deps {
				ready = max(ready, passed[d.transfer]+d.time)
			}
			s.tail = max(0, float64(e.End)-ready)
		}
	}
}

// addDep makes a call wait for a transfer that has passed the ports at a time.
func (w *whatIf) addDep(in trace.At, number int, passed float64) {
	e, x := w.event(in), &w.transfers[number]
	took := float64(e.End) - passed
	if ready := w.ready(x); e.End < ready { // by the clocks of two hosts
		took = float64(ready) - passed
	} else if most, ok := w.usual[x.class]; ok && ready < e.Begin {
		took = min(took, most)
	}
	s := &w.steps[in.Rank][in.Event]
	s.deps = append(s.deps, dep{int32(number), took})
}

func (w *whatIf) addCollective(calls []trace.At) {
	last := slices.MaxFunc(calls, func(a, b trace.At) int { return int(w.event(a).Begin - w.event(b).Begin) })
	e := w.event(last)
	root := slices.IndexFunc(calls, func(a trace.At) bool { return e.Peer >= 0 && w.rank(a) == int(e.Peer) })
	kind, form, ok := coll.KindOfFunction(strings.TrimSuffix(e.Name, "Value"))
	fromRoot := ok && form == coll.Blocking && kind.FromRoot()
	all := int32(-1)
	for i, a := range calls {
		s, own := &w.steps[a.Rank][a.Event], w.event(a)
		needs := calls
		switch {
		case root >= 0 && fromRoot && i != root:
			needs = []trace.At{calls[root], a}
		case root >= 0 && (fromRoot || i != root):
			needs = []trace.At{a}
		}
		begin := int64(math.MinInt64)
		for _, n := range needs {
			begin = max(begin, w.event(n).Begin)
		}
		if s.group = all; len(needs) < len(calls) || all < 0 {
			s.group = int32(len(w.groups))
			w.groups = append(w.groups, needs)
		}
		if len(needs) == len(calls) {
			all = s.group
		}
		s.after, s.tail = float64(max(0, own.End-begin)), 0
	}
}

// predict sets the times of findings that have a change.
func (j *job) predict(all []Finding) {
	first, part := j.toReplay()
	w := newWhatIf(first)
	replayed, ok := w.run()
	if !ok {
		return
	}
	now, recorded := float64(j.End-min(j.Begin, 0)), float64(first.End-min(first.Begin, 0))
	for i := range all {
		f := &all[i]
		if f.change == nil {
			continue
		}
		changed := w.clone()
		f.change(changed)
		if end, ok := changed.run(); ok && !changed.unknown {
			f.Prediction = &Prediction{Now: now / 1e9, Then: now / 1e9 * end / recorded, ReplayError: math.Abs(replayed-recorded) / recorded, Part: part}
		}
	}
}

// toReplay returns as many calls of the job as can be replayed, and their share.
func (j *job) toReplay() (first *job, part float64) {
	calls, longest := 0, 0
	for _, k := range j.Trace.Ranks {
		calls, longest = calls+len(k.Events), max(longest, len(k.Events))
	}
	if calls <= mostReplayed {
		return j, 1
	}
	each := max(1, int(float64(longest)*mostReplayed/float64(calls)))
	first = newJob(j.Trace.Part(each))
	kept := 0
	for _, k := range first.Trace.Ranks {
		kept += len(k.Events)
	}
	return first, float64(kept) / float64(calls)
}

func (w *whatIf) clone() *whatIf {
	c := *w
	c.transfers = slices.Clone(w.transfers)
	c.steps = make([][]step, len(w.steps))
	for r := range w.steps {
		c.steps[r] = slices.Clone(w.steps[r])
		for i := range c.steps[r] {
			c.steps[r][i].deps = slices.Clone(c.steps[r][i].deps)
		}
	}
	return &c
}
