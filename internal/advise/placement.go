package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/trace"
	"github.com/muster-mpi/muster/internal/traffic"
)

const (
	leastMoved = 0.2     // share of the bytes between hosts that must become local
	leastBytes = 1 << 20 // between hosts
)

// Traffic returns the bytes that the ranks of a trace send each other in messages of their own.
// Collectives do not count: the library adapts them to any placement.
func Traffic(t *trace.Trace) *traffic.Matrix {
	ranks := 0
	for _, r := range t.Ranks {
		ranks = max(ranks, r.Rank+1)
	}
	m := traffic.New(ranks)
	for _, r := range t.Ranks {
		for i := range r.Events {
			if e := &r.Events[i]; e.Sends && e.Peer >= 0 && int(e.Peer) < ranks {
				m.Add(r.Rank, int(e.Peer), e.Bytes)
			}
		}
	}
	return m
}

// hostsOf returns the host of each rank, as a number, and the number of hosts. A rank that has no
// trace is on the first.
func hostsOf(t *trace.Trace, ranks int) (host []int, hosts int) {
	of, hosts := t.Hosts()
	host = make([]int, ranks)
	for i, r := range t.Ranks {
		host[r.Rank] = of[i]
	}
	return host, hosts
}

// placements compares the bytes between hosts with those of a better placement of the ranks.
func (j *job) placements() []Finding {
	m := Traffic(j.Trace)
	host, hosts := hostsOf(j.Trace, m.Ranks())
	if hosts < 2 {
		return nil
	}
	placed := m.Assign(host)
	now, then := m.BytesBetween(host), m.BytesBetween(placed)
	if now < leastBytes || float64(now-then) < leastMoved*float64(now) {
		return nil
	}
	groups := make([][]string, hosts)
	for rank, h := range placed {
		groups[h] = append(groups[h], fmt.Sprint(rank))
	}
	var together []string
	for _, ranks := range groups {
		together = append(together, strings.Join(ranks, ","))
	}
	slices.SortFunc(together, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	saved := float64(now-then) / float64(now)
	return []Finding{{
		Gain:     saved * j.inMessages() / (j.span * float64(len(j.Trace.Ranks))),
		Evidence: fmt.Sprintf("messages between hosts have %d MB; with another placement %d MB", now>>20, then>>20),
		change:   func(w *whatIf) { w.moveRanks(placed) },
		Change:   "muster run --map-by traffic=TRACE places these ranks together: " + strings.Join(together, " | "),
	}}
}

// inMessages returns the time that ranks spend in calls that send or receive messages.
func (j *job) inMessages() (sum float64) {
	for _, r := range j.Trace.Ranks {
		for i := range r.Events {
			if e := &r.Events[i]; e.Sends || e.From >= 0 || e.Kind == kindWait {
				sum += float64(e.End - e.Begin)
			}
		}
	}
	return sum
}
