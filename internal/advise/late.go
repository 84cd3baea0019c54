package advise

import (
	"fmt"
	"strings"

	"github.com/muster-mpi/muster/internal/coll"
)

// lateAtCollectives finds long collectives at which ranks arrive at different times. An algorithm
// that starts with the ranks that are there transfers their data while the others compute: at
// most what the call takes besides waiting, and at most for as long as it waits.
func (j *job) lateAtCollectives() (all []Finding) {
	n := len(j.Trace.Ranks)
	if n < 4 {
		return nil
	}
	type lateSite struct {
		saved, waits float64
		calls        int
		change       string
	}
	sites, late := map[string]*lateSite{}, j.lateParts()
	for _, calls := range j.Collectives {
		e := j.event(calls[0])
		kind, form, ok := coll.KindOfFunction(strings.TrimSuffix(e.Name, "Value"))
		if !ok || form != coll.Blocking || len(calls) < n || e.Bytes < longMessage {
			continue
		}
		name := tolerant(kind)
		if name == "" {
			continue
		}
		waits, own := 0.0, float64(e.End-e.Begin-late[calls[0].Rank][calls[0].Event])
		for _, c := range calls {
			part := late[c.Rank][c.Event]
			waits += float64(part) / float64(n)
			own = min(own, float64(j.event(c).End-j.event(c).Begin-part))
		}
		s := sites[siteOf(e)]
		if s == nil {
			s = &lateSite{change: fmt.Sprintf("MUSTER_COLLECTIVE=%s=%s starts with the ranks that are there", kind, name)}
			sites[siteOf(e)] = s
		}
		s.calls++
		s.waits += waits
		s.saved += min(waits, own*(1-1/float64(n)))
	}
	for _, where := range sortKeys(sites) {
		s := sites[where]
		all = append(all, Finding{
			Sites: []string{where}, Gain: s.saved / j.span, Change: s.change,
			Evidence: fmt.Sprintf("in %d calls with at least %d KB a rank waits for %v until the last one arrives", s.calls, longMessage>>10, brief(s.waits)),
		})
	}
	return all
}

// tolerant returns the algorithm of a collective that does not wait for late ranks, or "".
func tolerant(kind coll.Kind) string {
	for _, a := range coll.AlgorithmsOf(kind) {
		if strings.HasPrefix(a.Name, "pap_") && !strings.Contains(a.Name, "shm") {
			return a.Name
		}
	}
	return ""
}
