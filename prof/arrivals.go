package prof

// Arrival patterns (T2 6.3.1): when ranks enter a collective and when they leave it. The
// steps from one rank's records to the job's statistics:
//
//	SampleWeight    selects the calls that are recorded: all at first, later ever fewer
//	GatherArrivals  turns a rank's records into a list of calls
//	Merge           merges two lists, in any order and grouping: along a tree
//	Means           returns the mean arrival time of each call
//	Deviations      returns, on each rank, its distances from the means, and its times in
//	                the worst calls; these are merged, too
//	Sites           (sites.go) returns the statistics of each call site, as in T2 table 6.1
//
// The length of the messages depends on the number of calls, not on the number of ranks,
// except for the few worst calls, of which the times of every rank are kept for the
// picture.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// keepAll is the number of calls that are all recorded. After that, each time the number
// of calls doubles, about keepAll/2 more are recorded. This bounds the cost for programs
// with many short calls, and the memory of the records.
const keepAll = 512

// SampleWeight reports whether the n-th call of a kind on a communicator, counted from 0, is
// recorded, and how many calls it represents. It depends only on n, so that all ranks
// record the same calls.
func SampleWeight(n uint64) (weight int, kept bool) {
	if n < keepAll {
		return 1, true
	}
	stride := uint64(1) << bits.Len64(n/keepAll)
	return int(stride), n&(stride-1) == 0
}

// NextKept returns the next recorded call after the n-th.
func NextKept(n uint64) uint64 {
	for n++; ; {
		weight, kept := SampleWeight(n)
		if kept {
			return n
		}
		n = (n | uint64(weight-1)) + 1
	}
}

// CallKey identifies a call. It is the same on all ranks that take part.
type CallKey struct {
	Comm uint64 `json:"c"` // of the communicator
	Kind int    `json:"k"` // of the collective
	N    uint64 `json:"n"` // its index among the calls of its kind
}

func (a CallKey) compare(b CallKey) int {
	return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.N, b.N))
}

// Arrival is the record of one rank for one call. Times are in ns of one clock.
type Arrival struct {
	Key     CallKey
	Routine string
	Site    string // the call site
	Size    int    // ranks of the communicator
	Weight  int    // calls that it represents
	Bytes   int
	At      int64 // arrival
	Left    int64 // exit; 0 if it did not leave
}

// Moment is the arrival and exit of one rank in one call.
type Moment struct {
	Rank int   `json:"r"`
	At   int64 `json:"a"`
	Left int64 `json:"e"`
}

// GatheredCall is a call with the statistics of the ranks that have been merged.
type GatheredCall struct {
	CallKey
	Routine string  `json:"t"`
	Site    string  `json:"s"` // of the lowest rank
	Lowest  int     `json:"l"`
	Size    int     `json:"p"`
	Weight  int     `json:"w"`
	Bytes   int     `json:"b"` // maximum over ranks
	Came    int     `json:"m"`
	Sum     float64 `json:"u"` // of arrivals
	First   int64   `json:"f"`
	Last    int64   `json:"a"`
	Exit    int64   `json:"e"` // the last
	InCall  float64 `json:"i"` // sum over ranks
	// Deviation is the sum over ranks of the distance from the mean arrival.
	Deviation float64  `json:"d,omitempty"`
	Moments   []Moment `json:"x,omitempty"` // of the worst calls
}

// Mean returns the mean arrival time.
func (c *GatheredCall) Mean() float64 { return c.Sum / float64(c.Came) }

// Spread returns the worst-case imbalance time: from the first arrival to the last (T2
// equation 6.3).
func (c *GatheredCall) Spread() int64 { return c.Last - c.First }

// complete reports whether the records of all ranks are merged.
func (c *GatheredCall) complete() bool { return c.Came == c.Size && c.Size > 1 }

// Arrivals is a list of calls, sorted by key, with properties of the job.
type Arrivals struct {
	Ranks   int            `json:"ranks"`
	Hosts   int            `json:"hosts"`
	Devices []string       `json:"devices"`
	Calls   []GatheredCall `json:"calls"`
	Lost    int            `json:"lost"` // records dropped for lack of memory
	// ClockError is the maximum error of the comparison of two clocks, in ns; 0 if the
	// ranks share one clock.
	ClockError int64         `json:"clock_error"`
	Messages   []MessageTime `json:"messages"` // times of messages, by length
}

// MessageTime is the time of a message of a length, in ns.
type MessageTime struct {
	Bytes int     `json:"bytes"`
	Nanos float64 `json:"ns"`
}

// GatherArrivals returns the list of the records of one rank.
func GatherArrivals(rank int, records []Arrival) *Arrivals {
	a := &Arrivals{Ranks: 1}
	for _, r := range records {
		if r.Left == 0 {
			continue // it failed
		}
		a.Calls = append(a.Calls, GatheredCall{CallKey: r.Key, Routine: r.Routine, Site: r.Site, Lowest: rank, Size: r.Size, Weight: r.Weight,
			Bytes: r.Bytes, Came: 1, Sum: float64(r.At), First: r.At, Last: r.At, Exit: r.Left, InCall: float64(r.Left - r.At)})
	}
	slices.SortFunc(a.Calls, func(x, y GatheredCall) int { return x.compare(y.CallKey) })
	return a
}

// Merge adds the records of other ranks.
func (a *Arrivals) Merge(o *Arrivals) {
	a.Ranks += o.Ranks
	a.Hosts += o.Hosts
	a.Lost += o.Lost
	a.ClockError = max(a.ClockError, o.ClockError)
	a.Devices = append(a.Devices, o.Devices...)
	slices.Sort(a.Devices)
	a.Devices = slices.Compact(a.Devices)
	merged := make([]GatheredCall, 0, max(len(a.Calls), len(o.Calls)))
	x, y := a.Calls, o.Calls
	for len(x) > 0 && len(y) > 0 {
		switch order := x[0].compare(y[0].CallKey); {
		case order < 0:
			merged, x = append(merged, x[0]), x[1:]
		case order > 0:
			merged, y = append(merged, y[0]), y[1:]
		default:
			merged, x, y = append(merged, x[0].merge(&y[0])), x[1:], y[1:]
		}
	}
	a.Calls = append(append(merged, x...), y...)
}

func (c GatheredCall) merge(o *GatheredCall) GatheredCall {
	if o.Lowest < c.Lowest {
		c.Lowest, c.Site, c.Routine = o.Lowest, o.Site, o.Routine
	}
	c.Bytes, c.Came, c.Sum = max(c.Bytes, o.Bytes), c.Came+o.Came, c.Sum+o.Sum
	c.First, c.Last, c.Exit = min(c.First, o.First), max(c.Last, o.Last), max(c.Exit, o.Exit)
	c.InCall, c.Deviation = c.InCall+o.InCall, c.Deviation+o.Deviation
	c.Moments = append(slices.Clip(c.Moments), o.Moments...)
	return c
}

// Means holds the mean arrival time of each call of a job, and the worst calls.
type Means struct {
	Keys  []CallKey `json:"k"`
	Mean  []float64 `json:"m"`
	Worst []bool    `json:"w"`
}

// worstCalls is the number of calls that are drawn, worstOfSite that of one call site.
const worstCalls, worstOfSite = 6, 2

// Means returns the means of the calls of all ranks. It removes calls that not all ranks
// have recorded, for instance for lack of memory.
func (a *Arrivals) Means() *Means {
	a.Calls = slices.DeleteFunc(a.Calls, func(c GatheredCall) bool { return !c.complete() })
	m := &Means{Worst: make([]bool, len(a.Calls))}
	order := make([]int, len(a.Calls))
	for i := range a.Calls {
		m.Keys, m.Mean, order[i] = append(m.Keys, a.Calls[i].CallKey), append(m.Mean, a.Calls[i].Mean()), i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(a.Calls[y].Spread(), a.Calls[x].Spread()) })
	left, ofSite := worstCalls, map[string]int{}
	for _, i := range order {
		if site := a.Calls[i].Site; left > 0 && ofSite[site] < worstOfSite {
			m.Worst[i], left = true, left-1
			ofSite[site]++
		}
	}
	return m
}

// Deviations returns the distances of one rank from the means, and its times in the worst
// calls, to be merged into the list of the same calls.
func (m *Means) Deviations(rank int, records []Arrival) *Arrivals {
	a := GatherArrivals(rank, records)
	kept := a.Calls[:0]
	for _, c := range a.Calls {
		i, found := slices.BinarySearchFunc(m.Keys, c.CallKey, CallKey.compare)
		if !found {
			continue
		}
		d := GatheredCall{CallKey: c.CallKey, Lowest: math.MaxInt, First: math.MaxInt64, Deviation: math.Abs(float64(c.First) - m.Mean[i])}
		if m.Worst[i] {
			d.Moments = []Moment{{Rank: rank, At: c.First, Left: c.Exit}}
		}
		kept = append(kept, d)
	}
	return &Arrivals{Calls: kept}
}

// Encode returns the list as JSON.
func (a *Arrivals) Encode() []byte { return encode(a) }

// Encode returns the means as JSON.
func (m *Means) Encode() []byte { return encode(m) }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("prof: plain values cannot be encoded: " + err.Error())
	}
	return append(b, '\n')
}

// DecodeArrivals parses the output of Arrivals.Encode.
func DecodeArrivals(b []byte) (*Arrivals, error) {
	a := new(Arrivals)
	if err := json.Unmarshal(b, a); err != nil {
		return nil, fmt.Errorf("prof: %d bytes are not an arrival profile: %w", len(b), err)
	}
	return a, nil
}

// DecodeMeans parses the output of Means.Encode.
func DecodeMeans(b []byte) (*Means, error) {
	m := new(Means)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("prof: %d bytes are not mean arrivals: %w", len(b), err)
	}
	if len(m.Mean) != len(m.Keys) || len(m.Worst) != len(m.Keys) {
		return nil, fmt.Errorf("prof: mean arrivals of %d calls have %d times", len(m.Keys), len(m.Mean))
	}
	return m, nil
}
