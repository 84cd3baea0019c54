package advise

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/internal/trace"
)

// leastComputed is the CPU time of the ranks of a host, relative to what their cores could give
// them while they compute. Ranks that wait outside the library, for a file or a clock, use less.
const leastComputed = 0.5

// hostCores are the ranks of a host and the cores that they may use.
type hostCores struct {
	ranks   []int // indices of Trace.Ranks
	allowed int   // cores that any of them may use; 0: not known
	online  int   // cores of the host
}

// coresOfHosts returns the cores of each host.
func coresOfHosts(t *trace.Trace) []hostCores {
	of, n := t.Hosts()
	hosts, cpus := make([]hostCores, n), make([][][2]int, n)
	for i, k := range t.Ranks {
		h := &hosts[of[i]]
		h.ranks = append(h.ranks, i)
		h.online = max(h.online, k.Cores)
		cpus[of[i]] = append(cpus[of[i]], k.CPUs...)
	}
	for i := range hosts {
		h, next := &hosts[i], 0
		slices.SortFunc(cpus[i], func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
		for _, c := range cpus[i] {
			h.allowed += max(0, c[1]+1-max(c[0], next))
			next = max(next, c[1]+1)
		}
		if len(cpus[i]) == 0 {
			h.allowed = h.online
		}
	}
	return hosts
}

// gapsOf returns the time that each call of a rank began after the calls before it had ended.
func gapsOf(events []trace.Event) (gaps [][2]int64) {
	busy := int64(0)
	for i := range events {
		from := busy
		gaps = append(gaps, [2]int64{from, max(from, events[i].Begin)})
		busy = max(busy, events[i].End)
	}
	return gaps
}

// waitsForCores returns for each rank of a host, and the computation before each of its calls, how
// long the rank had no core: while k ranks compute on c cores, each gets c/k of a core.
func (j *job) waitsForCores(h *hostCores) [][]float64 {
	type edge struct {
		at   int64
		more int // ranks that compute
	}
	var edges []edge
	gaps := make([][][2]int64, len(h.ranks))
	for i, r := range h.ranks {
		gaps[i] = gapsOf(j.Trace.Ranks[r].Events)
		for _, g := range gaps[i] {
			if g[1] > g[0] {
				edges = append(edges, edge{g[0], 1}, edge{g[1], -1})
			}
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	// lost is what a rank that computes from the beginning has lost until an edge.
	lost, computing := make([]float64, len(edges)), 0
	for i, e := range edges {
		if i > 0 {
			lost[i] = lost[i-1]
			if computing > h.allowed {
				lost[i] += float64(e.at-edges[i-1].at) * (1 - float64(h.allowed)/float64(computing))
			}
		}
		computing += e.more
	}
	lostAt := func(at int64) float64 {
		i, _ := slices.BinarySearchFunc(edges, at, func(e edge, at int64) int { return cmp.Compare(e.at, at) })
		return lost[i]
	}
	waits := make([][]float64, len(h.ranks))
	for i := range gaps {
		waits[i] = make([]float64, len(gaps[i]))
		for e, g := range gaps[i] {
			if g[1] > g[0] {
				waits[i][e] = lostAt(g[1]) - lostAt(g[0])
			}
		}
	}
	return waits
}

// sharedCores finds hosts with more ranks that compute than cores. Their CPU time shows whether
// they compute, or wait for something else between their calls, and whether other programs had the
// cores.
func (j *job) sharedCores() (all []Finding) {
	for number, h := range coresOfHosts(j.Trace) {
		if h.allowed == 0 || len(h.ranks) <= h.allowed {
			continue
		}
		var lost, granted, used float64
		var ranks []int
		where := perSite{}
		for i, waits := range j.waitsForCores(&h) {
			k := j.Trace.Ranks[h.ranks[i]]
			ranks = append(ranks, k.Rank)
			if n := len(k.Events); n > 0 {
				used += float64(k.CPUTime) * float64(n) / float64(n+k.Dropped)
			}
			for e, g := range gapsOf(k.Events) {
				lost += waits[e]
				granted += float64(g[1]-g[0]) - waits[e]
				where[siteOf(&k.Events[e])] += waits[e]
			}
		}
		if used < leastComputed*granted {
			continue
		}
		mean := lost / float64(len(h.ranks))
		f := Finding{
			Ranks: ranks, Gain: mean / j.span,
			Evidence: fmt.Sprintf("%d ranks share %d cores of host %s; while it computes, a rank waits for a core for %v, most before this call", len(h.ranks), h.allowed, j.Trace.Ranks[h.ranks[0]].Host, brief(mean)),
			Change:   fmt.Sprintf("start at most %d ranks on such a host, and use more hosts: muster run --ranks-per-host %[1]d", h.allowed),
			change:   func(w *whatIf) { w.giveCores(number) },
		}
		if h.online > h.allowed {
			f.Change = fmt.Sprintf("let the ranks use all %d cores of the host: --bind-to core, unless a container or batch system grants no more", h.online)
		}
		if site := where.most(); site != "" {
			f.Sites = []string{site}
		}
		all = append(all, f)
	}
	return all
}

// giveCores makes each rank of a host compute on a core of its own.
func (w *whatIf) giveCores(host int) {
	h := &coresOfHosts(w.Trace)[host]
	for i, waits := range w.waitsForCores(h) {
		for e, wait := range waits {
			w.steps[h.ranks[i]][e].compute -= wait
		}
	}
}
