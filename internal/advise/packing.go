package advise

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/trace"
)

// packings finds layouts whose data is copied at each call, because their elements are not
// contiguous.
func (j *job) packings() (all []Finding) {
	type copied struct {
		time  perRank
		calls int
	}
	sites := map[string]*copied{}
	for _, k := range j.Trace.Ranks {
		receives := receivesBy(k.Events)
		for i := range k.Events {
			e := &k.Events[i]
			if e.Packing == 0 {
				continue
			}
			where := packingSite(k.Events, receives, i)
			s := sites[where]
			if s == nil {
				s = &copied{time: perRank{}}
				sites[where] = s
			}
			s.calls++
			s.time[k.Rank] += float64(e.Packing)
		}
	}
	for _, where := range sortKeys(sites) {
		s := sites[where]
		rank, time, _ := s.time.most()
		all = append(all, Finding{
			Sites: []string{where}, Ranks: s.time.ranks(), Gain: time / j.span,
			Evidence: fmt.Sprintf("%d calls copy elements that are not contiguous in memory; rank %d copies for %v in all", s.calls, rank, brief(time)),
			Change:   "store these elements in a slice of their own, in which the computation writes and reads them: a layout without gaps is transferred without a copy",
			change:   func(w *whatIf) { w.removePacking(where) },
		})
	}
	return all
}

// receivesBy returns for each call the first receive that was started before and that it completed,
// or -1.
func receivesBy(events []trace.Event) []int {
	receives := make([]int, len(events))
	for i := range receives {
		receives[i] = -1
	}
	for i := range events {
		if e := &events[i]; e.Starts && e.By >= 0 && e.From >= 0 && int(e.By) != i && receives[e.By] < 0 {
			receives[e.By] = i
		}
	}
	return receives
}

// packingSite returns the call site of the layout that a call has packed or unpacked. A wait
// unpacks what a receive has started.
func packingSite(events []trace.Event, receives []int, i int) string {
	if events[i].Kind == kindWait && receives[i] >= 0 {
		return siteOf(&events[receives[i]])
	}
	return siteOf(&events[i])
}

// removePacking leaves out the copies of layouts of a call site. Data is packed before a call, and
// unpacked when what the call waits for is there; a collective does both outside the call.
func (w *whatIf) removePacking(where string) {
	for r, k := range w.Trace.Ranks {
		receives := receivesBy(k.Events)
		for i := range k.Events {
			e := &k.Events[i]
			if e.Packing == 0 || packingSite(k.Events, receives, i) != where {
				continue
			}
			s, copies := &w.steps[r][i], float64(e.Packing)
			switch {
			case e.Kind == kindCollective:
				s.cutCompute(copies / 2)
				if i+1 < len(k.Events) {
					w.steps[r][i+1].cutCompute(copies / 2)
				}
			case e.Sends:
				s.cutCompute(copies)
			default:
				s.cutEnd(copies)
			}
		}
	}
}

// cutCompute shortens the computation before a call.
func (s *step) cutCompute(by float64) { s.compute -= max(0, min(by, s.compute)) }

// cutEnd shortens what a call does after what it waits for is there.
func (s *step) cutEnd(by float64) {
	own := min(by, s.tail)
	s.tail -= own
	for i := range s.deps {
		s.deps[i].time = max(0, s.deps[i].time-(by-own))
	}
}
