package prof

// Calls by call site, and waits by peer: the statistics that a job with a profile of calls
// adds to its counters.

import (
	"cmp"
	"slices"
)

// SizeClasses is the number of classes of lengths: 0, 1, 2 to 3, 4 to 7, and so on.
const SizeClasses = 48

// CallSite holds the statistics of the calls of a routine at one call site. Ranks that did
// not make such a call count as 0.
type CallSite struct {
	Routine  string `json:"routine"`
	Kind     string `json:"kind"`
	Site     string `json:"site"` // file and line, or "" if not known
	Function string `json:"function"`
	// Object and Offset locate the call in a file of machine code, for programs that are
	// not written in Go, until Resolve replaces them by Site and Function.
	Object string `json:"object,omitempty"`
	Offset uint64 `json:"offset,omitempty"`

	Calls     Spread       `json:"calls"`
	Time      Spread       `json:"time"` // ns
	Longest   uint64       `json:"longest"`
	LongestAt int          `json:"longest_at"` // the rank with the longest call
	Messages  uint64       `json:"messages"`   // sent or received at once, or data of collectives
	Bytes     Spread       `json:"bytes"`      // of these
	Shortest  uint64       `json:"shortest"`
	Largest   uint64       `json:"largest"`
	Sizes     []ClassCount `json:"sizes,omitempty"`
	Overlap   Overlap      `json:"overlap,omitzero"` // of the operations that the calls have started
}

// ClassCount counts the messages of a class: 0 are empty messages, k those of 2^(k-1) to
// 2^k - 1 bytes.
type ClassCount struct {
	Class int    `json:"class"`
	Count uint64 `json:"count"`
}

// Wait is the time that a rank waited for another, in calls that send, receive or complete
// messages.
type Wait struct {
	Rank  int    `json:"rank"`
	For   int    `json:"for"`
	Calls uint64 `json:"calls"`
	Nanos uint64 `json:"ns"`
}

// Set sets the statistics of one rank.
func (c *CallSite) Set(rank int, calls, nanos, messages, bytes uint64) {
	c.Calls, c.Time, c.Bytes = single(calls, rank), single(nanos, rank), single(bytes, rank)
	c.Messages, c.LongestAt = messages, rank
}

func (c *CallSite) compare(o *CallSite) int {
	return cmp.Or(cmp.Compare(c.Site, o.Site), cmp.Compare(c.Routine, o.Routine), cmp.Compare(c.Function, o.Function),
		cmp.Compare(c.Object, o.Object), cmp.Compare(c.Offset, o.Offset))
}

func sortSites(sites []CallSite) {
	slices.SortStableFunc(sites, func(a, b CallSite) int { return a.compare(&b) })
}

// sortedSites returns the sites of one rank, each of them once: a line may have several
// calls.
func sortedSites(sites []CallSite) (all []CallSite) {
	sites = slices.Clone(sites)
	sortSites(sites)
	for i := range sites {
		if n := len(all); n > 0 && all[n-1].compare(&sites[i]) == 0 {
			all[n-1].join(&sites[i])
			continue
		}
		all = append(all, sites[i])
	}
	return all
}

// join adds another call site of the same rank.
func (c *CallSite) join(o *CallSite) {
	c.add(o, func(a, b Spread) Spread { return single(a.Sum+b.Sum, a.MaxAt) })
}

// add adds the statistics of the same calls.
func (c *CallSite) add(o *CallSite, merge func(a, b Spread) Spread) {
	c.Calls, c.Time, c.Bytes = merge(c.Calls, o.Calls), merge(c.Time, o.Time), merge(c.Bytes, o.Bytes)
	if o.Longest > c.Longest || o.Longest == c.Longest && o.LongestAt < c.LongestAt {
		c.Longest, c.LongestAt = o.Longest, o.LongestAt
	}
	if c.Messages == 0 || o.Messages > 0 && o.Shortest < c.Shortest {
		c.Shortest = o.Shortest
	}
	c.Messages += o.Messages
	c.Largest = max(c.Largest, o.Largest)
	c.Overlap.Add(o.Overlap)
	c.Sizes = slices.Clone(c.Sizes)
	for _, n := range o.Sizes {
		at, found := slices.BinarySearchFunc(c.Sizes, n, func(a, b ClassCount) int { return cmp.Compare(a.Class, b.Class) })
		if found {
			c.Sizes[at].Count += n.Count
		} else {
			c.Sizes = slices.Insert(c.Sizes, at, n)
		}
	}
}

// mergeSites merges the sites of two groups of ranks, whose lowest ranks are first and
// other.
func mergeSites(a, b []CallSite, first, other int) []CallSite {
	var all []CallSite
	absent := func(c CallSite, rank int) CallSite {
		none := CallSite{LongestAt: rank}
		none.Set(rank, 0, 0, 0, 0)
		c.add(&none, Spread.merge)
		return c
	}
	for len(a) > 0 || len(b) > 0 {
		order := 0
		switch {
		case len(b) == 0:
			order = -1
		case len(a) == 0:
			order = 1
		default:
			order = a[0].compare(&b[0])
		}
		switch {
		case order < 0:
			all, a = append(all, absent(a[0], other)), a[1:]
		case order > 0:
			all, b = append(all, absent(b[0], first)), b[1:]
		default:
			c := a[0]
			c.add(&b[0], Spread.merge)
			all, a, b = append(all, c), a[1:], b[1:]
		}
	}
	return all
}

// waitsKept is the number of waits in a summary.
const waitsKept = 10

// longest returns the longest waits.
func longest(waits []Wait) []Wait {
	waits = slices.SortedFunc(slices.Values(waits), func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Nanos, a.Nanos), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.For, b.For))
	})
	return slices.Clip(waits[:min(len(waits), waitsKept)])
}
