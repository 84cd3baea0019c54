package advise

// Prediction: the trace is replayed with a change. Each rank computes and calls as recorded. A
// call ends when what it waits for is there, and these dependencies are kept instead of
// recorded times:
//
//	receive      the message was sent (and, if it is long, the receive posted): then it takes as
//	             long as recorded, or as long as such messages take if it was hidden
//	long send    the receive was posted
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

// mostReplayed bounds the calls that are replayed, for memory. Longer programs have no predictions.
const mostReplayed = 1 << 19

// whatIf is a program that can be replayed. Times are in ns.
type whatIf struct {
	*job
	steps   [][]step
	groups  [][]trace.At // collectives
	hosts   []int        // by rank
	usual   map[class]float64
	unknown bool // the trace does not show what a change brings
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
}

// dep is what a call waits for: until both calls have begun, and for some time then.
type dep struct {
	on, start trace.At
	time      float64
	class     class
}

// class is messages that should take equally long.
type class struct {
	far bool
	log int // of the length
}

// newWhatIf returns the recorded program, or nil if it is too long.
func newWhatIf(j *job) *whatIf {
	w, calls := &whatIf{job: j}, 0
	for _, k := range j.Trace.Ranks {
		calls += len(k.Events)
		if calls > mostReplayed {
			return nil
		}
		steps, busy := make([]step, len(k.Events)), 0.0
		for i := range k.Events {
			e := &k.Events[i]
			steps[i].compute, steps[i].group = float64(e.Begin)-busy, -1
			busy = max(busy, float64(e.End))
		}
		w.steps = append(w.steps, steps)
	}
	w.hosts, _ = j.Trace.Hosts()
	w.usual = w.usualTimes()
	for _, m := range j.Messages {
		w.addMessage(m)
	}
	for _, calls := range j.Collectives {
		w.addCollective(calls)
	}
	for r, k := range j.Trace.Ranks {
		for i := range k.Events {
			s, e := &w.steps[r][i], &k.Events[i]
			ready := float64(e.Begin)
			for _, d := range s.deps {
				ready = max(ready, float64(max(j.event(d.on).Begin, j.event(d.start).Begin))+d.time)
			}
			if s.group < 0 {
				s.tail = max(0, float64(e.End)-ready)
			}
		}
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

// usualTimes returns the median time of messages of which nothing was hidden.
func (w *whatIf) usualTimes() map[class]float64 {
	samples := map[class][]float64{}
	for _, m := range w.Messages {
		done := w.event(w.completing(m.Recv))
		ready := max(w.event(m.Send).Begin, w.event(w.startOf(m)).Begin)
		if ready >= done.Begin && ready < done.End {
			c := w.classOf(m)
			samples[c] = append(samples[c], float64(done.End-ready))
		}
	}
	usual := map[class]float64{}
	for c, all := range samples {
		slices.Sort(all)
		usual[c] = all[len(all)/2]
	}
	return usual
}

func (w *whatIf) addMessage(m trace.Message) {
	c := w.classOf(m)
	add := func(in, on, start trace.At) {
		e := w.event(in)
		ready := max(w.event(on).Begin, w.event(start).Begin)
		took := float64(max(0, e.End-ready))
		if most, ok := w.usual[c]; ok && ready < e.Begin {
			took = min(took, most)
		}
		s := &w.steps[in.Rank][in.Event]
		s.deps = append(s.deps, dep{on, start, took, c})
	}
	start := w.startOf(m)
	recv, send := w.completing(m.Recv), w.completing(m.Send)
	if w.event(m.Send).Begin <= w.event(recv).End {
		add(recv, m.Send, start)
	}
	if start == m.Recv && w.event(m.Recv).Begin <= w.event(send).End && w.event(m.Send).Kind != "sendrecv" {
		add(send, m.Recv, m.Send)
	}
}

func (w *whatIf) addCollective(calls []trace.At) {
	last := slices.MaxFunc(calls, func(a, b trace.At) int { return int(w.event(a).Begin - w.event(b).Begin) })
	e := w.event(last)
	root := slices.IndexFunc(calls, func(a trace.At) bool { return e.Peer >= 0 && w.rank(a) == e.Peer })
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
		s.after = float64(max(0, own.End-begin))
	}
}

// entered is how many calls of a collective have begun, and when the last of them did.
type entered struct {
	calls int
	at    float64
}

// last returns when the last of the calls has begun, NaN if not all have.
func (g *entered) last(calls []trace.At, begin [][]float64) float64 {
	for ; g.calls < len(calls); g.calls++ {
		a := calls[g.calls]
		t := begin[a.Rank][a.Event]
		if math.IsNaN(t) {
			return t
		}
		if g.calls == 0 || t > g.at {
			g.at = t
		}
	}
	return g.at
}

// run replays the program and returns the time of its end. ok is false if calls wait for each
// other, so that the change is impossible.
func (w *whatIf) run() (end float64, ok bool) {
	begin := make([][]float64, len(w.steps))
	next, clock := make([]int, len(w.steps)), make([]float64, len(w.steps))
	for r := range w.steps {
		begin[r] = slices.Repeat([]float64{math.NaN()}, len(w.steps[r]))
	}
	at := func(a trace.At) float64 {
		t := begin[a.Rank][a.Event]
		if s := &w.steps[a.Rank][a.Event]; s.ahead {
			t -= s.compute
		}
		return t
	}
	groups := make([]entered, len(w.groups))
	for round, moved := 0, true; moved; round++ {
		moved = false
		for r := range w.steps {
			if round%2 > 0 { // chains of ranks that wait for each other go either way
				r = len(w.steps) - 1 - r
			}
			steps := w.steps[r]
			for next[r] < len(steps) {
				s := &steps[next[r]]
				b := clock[r] + s.compute
				begin[r][next[r]] = b
				ready := b + s.inside
				for _, d := range s.deps { // the maximum is NaN if one has not begun
					ready = max(ready, max(at(d.on), at(d.start))+d.time)
				}
				if s.group >= 0 {
					ready = max(ready, groups[s.group].last(w.groups[s.group], begin)+s.after)
				}
				if math.IsNaN(ready) {
					break
				}
				clock[r] = max(clock[r], ready+s.tail)
				next[r]++
				moved = true
			}
		}
	}
	for r := range w.steps {
		if next[r] < len(w.steps[r]) {
			return 0, false
		}
		end = max(end, clock[r])
	}
	return end, true
}

// predict sets the times of findings that have a change.
func (j *job) predict(all []Finding) {
	w := newWhatIf(j)
	if w == nil {
		return
	}
	replayed, ok := w.run()
	if !ok {
		return
	}
	recorded := float64(j.End - min(j.Begin, 0))
	for i := range all {
		f := &all[i]
		if f.change == nil {
			continue
		}
		changed := w.clone()
		f.change(changed)
		if end, ok := changed.run(); ok && !changed.unknown {
			f.Prediction = &Prediction{Now: recorded / 1e9, Then: end / 1e9, ReplayError: math.Abs(replayed-recorded) / recorded}
		}
	}
}

func (w *whatIf) clone() *whatIf {
	c := *w
	c.steps = make([][]step, len(w.steps))
	for r := range w.steps {
		c.steps[r] = slices.Clone(w.steps[r])
		for i := range c.steps[r] {
			c.steps[r][i].deps = slices.Clone(c.steps[r][i].deps)
		}
	}
	return &c
}
