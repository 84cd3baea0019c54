package advise

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/trace"
)

const (
	// shortMessage is the length up to which the cost of a message does not depend on it.
	shortMessage = 1 << 10
	// fewestInBurst is how many messages in a row are worth combining.
	fewestInBurst = 8
	// longMessage is the length from which a message is sent by a rendezvous and can be
	// transferred while the rank computes.
	longMessage = 32 << 10
)

// sameBurst reports whether two sends are messages in a row.
func sameBurst(a, b *trace.Event) bool {
	return a.Sends && b.Sends && a.Site == b.Site && a.Peer == b.Peer && a.Tag == b.Tag && a.Comm == b.Comm && b.Bytes <= shortMessage
}

// bursts finds short messages to one rank in a row.
func (j *job) bursts() (all []Finding) {
	type burst struct {
		time         perRank
		runs, number int
		bytes        int
	}
	sites := map[string]*burst{}
	for _, k := range j.Trace.Ranks {
		for _, r := range runsOf(k.Events, sameBurst) {
			first := &k.Events[r.from]
			if !first.Sends || first.Bytes > shortMessage || r.to-r.from < fewestInBurst {
				continue
			}
			s := sites[siteOf(first)]
			if s == nil {
				s = &burst{time: perRank{}}
				sites[siteOf(first)] = s
			}
			s.runs++
			for i := r.from; i < r.to; i++ {
				if e := &k.Events[i]; e.Sends {
					s.number, s.bytes = s.number+1, s.bytes+e.Bytes
				}
			}
			s.time[k.Rank] += float64(k.Events[r.to-1].End - first.Begin)
		}
	}
	for _, where := range sortKeys(sites) {
		s := sites[where]
		_, time, _ := s.time.most()
		each := s.number / s.runs
		all = append(all, Finding{
			Sites: []string{where}, Ranks: s.time.ranks(), Gain: time / j.span * (1 - 1/float64(each)),
			Evidence: fmt.Sprintf("%d messages of %d bytes, %d in a row to the same rank: %v of the busiest rank", s.number, s.bytes/s.number, each, brief(time)),
			Change:   "copy them into one buffer and send it once",
			change:   func(w *whatIf) { w.combine(where) },
		})
	}
	return all
}

// idleWaits finds long transfers that are waited for at once, by a rank that computes
// afterwards. As much of the transfer as that computation takes could be hidden behind it.
func (j *job) idleWaits() (all []Finding) {
	type wait struct {
		hidden, waited perRank
		calls          int
		start          string
	}
	late := j.lateParts()
	sites := map[string]*wait{}
	for r, k := range j.Trace.Ranks {
		longest := longestBy(k.Events)
		for i := range k.Events[:max(len(k.Events)-1, 0)] {
			e := &k.Events[i]
			begun := longest[i]
			if begun < 0 {
				continue
			}
			took, after := float64(e.End-e.Begin-late[r][i]), float64(k.Events[i+1].Begin-e.End)
			before := float64(e.Begin - k.Events[begun].End)
			if begun != i && before > took/4 { // it has computed meanwhile
				continue
			}
			s := sites[siteOf(e)]
			if s == nil {
				s = &wait{hidden: perRank{}, waited: perRank{}, start: siteOf(&k.Events[begun])}
				sites[siteOf(e)] = s
			}
			s.calls++
			s.waited[k.Rank] += took
			s.hidden[k.Rank] += min(took, after)
		}
	}
	for _, where := range sortKeys(sites) {
		s := sites[where]
		rank, hidden, _ := s.hidden.most()
		f := Finding{
			Sites: []string{where}, Ranks: s.hidden.ranks(), Gain: hidden / j.span,
			Evidence: fmt.Sprintf("%d waits for messages of %d KB and more; rank %d waits for %v in all, and then computes", s.calls, longMessage>>10, rank, brief(s.waited[rank])),
			change:   func(w *whatIf) { w.hide(where) },
			Change:   "start it with Isend or Irecv, and wait for it after the computation that does not need it",
		}
		if s.start != where {
			f.Sites = append(f.Sites, s.start)
			f.Change = "move the computation that does not need the message between its start and this wait"
		}
		all = append(all, f)
	}
	return all
}

// longestBy returns for each call that completes a long message the call that started the first of
// these: itself, if it blocks; -1 for others.
func longestBy(events []trace.Event) []int {
	started := make([]int, len(events))
	for i := range started {
		started[i] = -1
	}
	for i := range events {
		e := &events[i]
		if max(e.Bytes, e.FromBytes) < longMessage || !e.Sends && e.From < 0 {
			continue
		}
		by := i
		if e.Starts {
			by = int(e.By)
		}
		if by >= 0 && started[by] < 0 {
			started[by] = i
		}
	}
	return started
}

// lateReceives finds long sends that wait until the receive is posted. Ranks that wait for each
// other in turn take their noise in turn: only the difference counts.
func (j *job) lateReceives() (all []Finding) {
	type late struct {
		pairs map[[2]int]float64 // by waiting rank and late rank
		calls int
		recv  string
	}
	sites := map[string]*late{}
	for _, w := range j.Waits {
		in, other := j.event(w.In), j.event(w.For)
		if w.Cause != trace.LateReceiver || other.FromBytes < longMessage {
			continue
		}
		where := siteOf(other)
		s := sites[where]
		if s == nil {
			s = &late{pairs: map[[2]int]float64{}, recv: siteOf(in)}
			sites[where] = s
		}
		s.calls++
		s.pairs[[2]int{j.rank(w.In), j.rank(w.For)}] += float64(w.To - w.From)
	}
	for _, where := range sortKeys(sites) {
		s, by := sites[where], perRank{}
		for pair, time := range s.pairs {
			if net := time - s.pairs[[2]int{pair[1], pair[0]}]; net > 0 {
				by[pair[0]] += net
			}
		}
		rank, time, _ := by.most()
		all = append(all, Finding{
			Sites: []string{where, s.recv}, Ranks: by.ranks(), Gain: time / j.span,
			Evidence: fmt.Sprintf("%d sends wait until this receive is posted; rank %d waits for %v in all", s.calls, rank, brief(time)),
			Change:   "post the receive earlier, with Irecv",
			change:   func(w *whatIf) { w.postEarlier(where) },
		})
	}
	return all
}
