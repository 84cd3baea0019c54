package prof

// The reduction of counters: a summary of one rank, and the merge of two summaries. The
// result does not depend on the order and grouping, so ranks can merge along a tree. In a
// file a summary is JSON; wire.go has the form of messages.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Spread holds the statistics of a counter over the ranks of a job. Ranks without the
// counter count as 0.
type Spread struct {
	Sum   uint64 `json:"sum"`
	Min   uint64 `json:"min"`
	MinAt int    `json:"min_at"` // the first rank with the value Min
	Max   uint64 `json:"max"`
	MaxAt int    `json:"max_at"` // the first rank with the value Max
}

// Summary combines the counters of some or all ranks of a job.
type Summary struct {
	Ranks   int             `json:"ranks"`
	First   int             `json:"first_rank"` // the lowest of them
	Devices []string        `json:"devices"`
	Values  map[Name]Spread `json:"counters"`
	Sizes   []SizeClass     `json:"message_sizes"`
	Pairs   []Pair          `json:"busiest_pairs"`
	Sites   []CallSite      `json:"call_sites,omitempty"`
	Waits   []Wait          `json:"longest_waits,omitempty"`
}

// Summarize returns the summary of one rank.
func Summarize(c *Counters) *Summary {
	s := &Summary{Ranks: 1, First: c.Rank, Devices: slices.Sorted(slices.Values(c.Devices)), Values: make(map[Name]Spread, len(c.Values))}
	for name, v := range c.Values {
		s.Values[name] = single(v, c.Rank)
	}
	s.addSizes(c.Sizes)
	s.Pairs = busiest(c.Peers)
	s.Sites = sortedSites(c.Sites)
	s.Waits = longest(c.Waits)
	return s
}

// Merge adds the ranks of another summary. The two must have no rank in common.
func (s *Summary) Merge(o *Summary) {
	for name, b := range o.Values {
		a, ok := s.Values[name]
		if !ok {
			a = single(0, s.First)
		}
		s.Values[name] = a.merge(b)
	}
	for name, a := range s.Values {
		if _, ok := o.Values[name]; !ok {
			s.Values[name] = a.merge(single(0, o.First))
		}
	}
	s.Sites = mergeSites(s.Sites, o.Sites, s.First, o.First)
	s.Waits = longest(append(s.Waits, o.Waits...))
	s.Ranks += o.Ranks
	s.First = min(s.First, o.First)
	s.Devices = append(s.Devices, o.Devices...)
	slices.Sort(s.Devices)
	s.Devices = slices.Compact(s.Devices)
	s.addSizes(o.Sizes)
	s.Pairs = busiest(append(s.Pairs, o.Pairs...))
}

// single returns the statistics of one rank.
func single(v uint64, rank int) Spread {
	return Spread{Sum: v, Min: v, MinAt: rank, Max: v, MaxAt: rank}
}

func (a Spread) merge(b Spread) Spread {
	a.Sum += b.Sum
	if b.Min < a.Min || b.Min == a.Min && b.MinAt < a.MinAt {
		a.Min, a.MinAt = b.Min, b.MinAt
	}
	if b.Max > a.Max || b.Max == a.Max && b.MaxAt < a.MaxAt {
		a.Max, a.MaxAt = b.Max, b.MaxAt
	}
	return a
}

// addSizes adds classes of messages and keeps them sorted.
func (s *Summary) addSizes(more []SizeClass) {
	for _, m := range more {
		at, found := slices.BinarySearchFunc(s.Sizes, m, func(a, b SizeClass) int {
			return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.From, b.From))
		})
		if !found {
			s.Sizes = slices.Insert(s.Sizes, at, m)
			continue
		}
		s.Sizes[at].Messages += m.Messages
		s.Sizes[at].Bytes += m.Bytes
	}
}

// Mean returns the mean of a counter over the ranks.
func (s *Summary) Mean(name Name) float64 {
	return float64(s.Values[name].Sum) / float64(max(s.Ranks, 1))
}

// EncodeFile returns the summary as JSON for readers.
func (s *Summary) EncodeFile() []byte {
	b, err := json.MarshalIndent(s, "", "\t")
	if err != nil {
		panic("prof: a summary of plain values cannot be encoded: " + err.Error())
	}
	return append(b, '\n')
}

// Decode parses the output of EncodeFile.
func Decode(b []byte) (*Summary, error) {
	s := new(Summary)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("prof: %d bytes are not a profile: %w", len(b), err)
	}
	if s.Values == nil {
		s.Values = map[Name]Spread{}
	}
	return s, nil
}
