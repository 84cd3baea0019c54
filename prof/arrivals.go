package prof

// Arrival patterns (T2 6.3.1): when the ranks come to a collective and when they leave.
// From one rank's records to the job's figures:
//
//	Kept       which calls are recorded: all at first, later ever fewer
//	Gathered   a rank's records, as calls to which one rank has come
//	Merge      two lists become one, in any order and grouping: along a tree
//	Means      of the whole list: the mean arrival at each call
//	Deviations back at each rank: how far it was from the means, and its own moments
//	           in the worst calls; these are merged, too
//	Sites      (sites.go) the figures of each call site, as in T2 table 6.1
//
// What travels is as long as the list of calls, however many ranks there are; but for
// the few worst calls, of which every rank's part is kept for the picture.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// keepAll is up to which number all calls are recorded, and from where on they are
// thinned out: then about half as many again each time the number of calls doubles. So
// a program that makes a call and a little work again and again does not pay for it
// for ever, and records need little memory.
const keepAll = 512

// Kept reports whether the n-th call of a kind on a communicator, counted from 0, is
// recorded, and for how many calls it stands. It follows from the number alone, so
// that all ranks record the same calls.
func Kept(n uint64) (weight int, kept bool) {
	if n < keepAll {
		return 1, true
	}
	stride := uint64(1) << bits.Len64(n/keepAll)
	return int(stride), n&(stride-1) == 0
}

// NextKept is the next call after the n-th that is recorded.
func NextKept(n uint64) uint64 {
	for n++; ; {
		weight, kept := Kept(n)
		if kept {
			return n
		}
		n = (n | uint64(weight-1)) + 1
	}
}

// CallKey says which call it is, the same at all ranks that take part in it.
type CallKey struct {
	Comm uint64 `json:"c"` // of the communicator
	Kind int    `json:"k"` // of the collective
	N    uint64 `json:"n"` // the how manieth of its kind there
}

func (a CallKey) compare(b CallKey) int {
	return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.N, b.N))
}

// Arrival is what one rank has recorded of one call. Times are ns of one clock.
type Arrival struct {
	Key     CallKey
	Routine string
	Site    string // where the program makes the call
	Size    int    // ranks of the communicator
	Weight  int    // calls that it stands for
	Bytes   int
	At      int64 // arrival
	Left    int64 // exit; 0: it did not
}

// Moment is one rank in one call.
type Moment struct {
	Rank int   `json:"r"`
	At   int64 `json:"a"`
	Left int64 `json:"e"`
}

// GatheredCall is a call with what is known of those who have come.
type GatheredCall struct {
	CallKey
	Routine string  `json:"t"`
	Site    string  `json:"s"` // that of the lowest rank
	Lowest  int     `json:"l"`
	Size    int     `json:"p"`
	Weight  int     `json:"w"`
	Bytes   int     `json:"b"` // the most of any
	Came    int     `json:"m"`
	Sum     float64 `json:"u"` // of arrivals
	First   int64   `json:"f"`
	Last    int64   `json:"a"`
	Exit    int64   `json:"e"` // the last
	InCall  float64 `json:"i"` // sum over ranks
	// Deviation is the sum over ranks of how far they were from the mean arrival.
	Deviation float64  `json:"d,omitempty"`
	Moments   []Moment `json:"x,omitempty"` // of the worst calls
}

// Mean is the mean arrival.
func (c *GatheredCall) Mean() float64 { return c.Sum / float64(c.Came) }

// Spread is the worst-case imbalance time: from the first arrival to the last (T2
// equation 6.3).
func (c *GatheredCall) Spread() int64 { return c.Last - c.First }

// complete reports whether all have come, and left.
func (c *GatheredCall) complete() bool { return c.Came == c.Size && c.Size > 1 }

// Arrivals is a list of calls, ordered by their keys, and what is known of the job.
type Arrivals struct {
	Ranks   int            `json:"ranks"`
	Hosts   int            `json:"hosts"`
	Devices []string       `json:"devices"`
	Calls   []GatheredCall `json:"calls"`
	Lost    int            `json:"lost"` // records that found no room
	// ClockError is how wrong the comparison of two clocks may be at most, in ns; 0: the
	// ranks have one clock.
	ClockError int64         `json:"clock_error"`
	Messages   []MessageTime `json:"messages"` // what messages take, by length
}

// MessageTime is the time of a message of a length, in ns.
type MessageTime struct {
	Bytes int     `json:"bytes"`
	Nanos float64 `json:"ns"`
}

// GatherArrivals makes a list of what one rank has recorded.
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

// Merge adds what other ranks have recorded.
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
			merged, x, y = append(merged, x[0].with(&y[0])), x[1:], y[1:]
		}
	}
	a.Calls = append(append(merged, x...), y...)
}

func (c GatheredCall) with(o *GatheredCall) GatheredCall {
	if o.Lowest < c.Lowest {
		c.Lowest, c.Site, c.Routine = o.Lowest, o.Site, o.Routine
	}
	c.Bytes, c.Came, c.Sum = max(c.Bytes, o.Bytes), c.Came+o.Came, c.Sum+o.Sum
	c.First, c.Last, c.Exit = min(c.First, o.First), max(c.Last, o.Last), max(c.Exit, o.Exit)
	c.InCall, c.Deviation = c.InCall+o.InCall, c.Deviation+o.Deviation
	c.Moments = append(slices.Clip(c.Moments), o.Moments...)
	return c
}

// Means is the mean arrival at each call of a job, and which are the worst.
type Means struct {
	Keys  []CallKey `json:"k"`
	Mean  []float64 `json:"m"`
	Worst []bool    `json:"w"`
}

// worstCalls is how many are drawn, and worstOfSite how many of one call site.
const worstCalls, worstOfSite = 6, 2

// Means looks at the calls of all ranks. Those that not all have made, as when a rank's
// record had no room, are left out from here on.
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

// Deviations is a list of how far one rank was from the means, and of its moments in
// the worst calls. Merged into a list of the same calls it completes it.
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

// Encode is the list as JSON.
func (a *Arrivals) Encode() []byte { return encode(a) }

// Encode is the means as JSON.
func (m *Means) Encode() []byte { return encode(m) }

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("prof: plain values cannot be encoded: " + err.Error())
	}
	return append(b, '\n')
}

// DecodeArrivals reads what Encode has made.
func DecodeArrivals(b []byte) (*Arrivals, error) {
	a := new(Arrivals)
	if err := json.Unmarshal(b, a); err != nil {
		return nil, fmt.Errorf("prof: %d bytes are no arrival profile: %w", len(b), err)
	}
	return a, nil
}

// DecodeMeans reads what Encode has made.
func DecodeMeans(b []byte) (*Means, error) {
	m := new(Means)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("prof: %d bytes are no mean arrivals: %w", len(b), err)
	}
	if len(m.Mean) != len(m.Keys) || len(m.Worst) != len(m.Keys) {
		return nil, fmt.Errorf("prof: mean arrivals of %d calls have %d times", len(m.Keys), len(m.Mean))
	}
	return m, nil
}
