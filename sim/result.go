package sim

import (
	"cmp"
	"slices"
)

// Stats counts what happened. Messages are those of schedules; Control are the requests
// and ends of long messages besides.
type Stats struct {
	Near      int64 `json:"near"`      // messages within nodes
	NearLong  int64 `json:"near_long"` // of these, announced first
	NearBytes int64 `json:"near_bytes"`
	Far       int64 `json:"far"` // messages between nodes
	FarLong   int64 `json:"far_long"`
	FarBytes  int64 `json:"far_bytes"`
	Control   int64 `json:"control"`
	Events    int64 `json:"events"`
}

// Messages returns the number of messages of the schedules.
func (s *Stats) Messages() int64 { return s.Near + s.Far }

// Result is what a simulation found. Times are in microseconds.
type Result struct {
	Ranks, Nodes, Rails int
	// First, Mean and Last are when the ranks leave the last call, counted from the
	// arrival of the last rank in the first call.
	First, Mean, Last float64
	// InCalls is the mean time of a rank from its own arrival on.
	InCalls float64
	Stats   Stats
	// Memory has the bytes of the simulator by structure.
	Memory []Memory
	// Rails and hosts with the longest busy times, the longest first.
	HotRails []HotRail
	HotHosts []HotHost
	Path     []Hop
	// Ends is when each rank leaves, in the order of ranks.
	Ends func(rank int) float64 `json:"-"`
	// Templates is the number of different schedules.
	Templates int
	// Packets by kind and the peaks of memory, of level packets.
	Packets []PacketCount
	Peaks   *Peaks
}

// Memory is the bytes of a structure.
type Memory struct {
	What  string `json:"what"`
	Bytes int    `json:"bytes"`
}

// HotRail is a rail of a node and how long it was busy.
type HotRail struct {
	Node      int     `json:"node"`
	Rail      int     `json:"rail"`
	Direction string  `json:"direction"`
	Busy      float64 `json:"busy_us"`
}

// HotHost is a host and the time of all its cores.
type HotHost struct {
	Host int     `json:"host"`
	Busy float64 `json:"busy_us"`
}

const hottest = 5

func (s *Sim) result() *Result {
	x := &Result{Ranks: s.size, Nodes: s.nodes, Rails: s.rails, Stats: s.stats, Memory: s.memoryUse()}
	arrival, first, last := int64(0), int64(1)<<62, int64(-1)
	sum, inside, latest := 0.0, 0.0, 0
	for r := range s.ranks {
		k := &s.ranks[r]
		arrival = max(arrival, k.begin)
		first = min(first, k.end)
		sum += float64(k.end)
		inside += float64(k.end - k.begin)
		if k.end > last {
			last, latest = k.end, r
		}
	}
	n := float64(s.size)
	base := float64(arrival)
	x.First, x.Mean, x.Last, x.InCalls = (float64(first)-base)/1e6, (sum/n-base)/1e6, (float64(last)-base)/1e6, inside/n/1e6
	x.Ends = func(rank int) float64 { return (float64(s.ranks[rank].end) - base) / 1e6 }
	for i := range s.steps {
		if i == 0 || s.steps[i].schedules != s.steps[i-1].schedules {
			x.Templates += len(s.steps[i].templates)
		}
	}
	if s.packets != nil {
		s.packets.count(x)
	}
	s.hot(x)
	if s.path != nil {
		x.Path = s.criticalPath(int32(latest))
	}
	return x
}

func (s *Sim) hot(x *Result) {
	for _, d := range []struct {
		name  string
		rails []rail
	}{{"out", s.tx}, {"in", s.rx}} {
		for i, l := range d.rails {
			if l.busy > 0 {
				x.HotRails = append(x.HotRails, HotRail{i / s.rails, i % s.rails, d.name, float64(l.busy) / 1e6})
			}
		}
	}
	slices.SortStableFunc(x.HotRails, func(a, b HotRail) int { return cmp.Compare(b.Busy, a.Busy) })
	x.HotRails = slices.Clone(x.HotRails[:min(hottest, len(x.HotRails))])
	for i := range s.hosts {
		if b := s.hosts[i].busy; b > 0 {
			x.HotHosts = append(x.HotHosts, HotHost{i, float64(b) / 1e6})
		}
	}
	slices.SortStableFunc(x.HotHosts, func(a, b HotHost) int { return cmp.Compare(b.Busy, a.Busy) })
	x.HotHosts = slices.Clone(x.HotHosts[:min(hottest, len(x.HotHosts))])
}

// memoryUse returns the bytes of each structure, at its largest.
func (s *Sim) memoryUse() []Memory {
	const rankSize, moreSize = 64, 136
	var templates, peers, more int
	seen := map[*schedules]bool{}
	for i := range s.steps {
		c := s.steps[i].schedules
		if seen[c] {
			continue
		}
		seen[c] = true
		for _, t := range c.templates {
			templates += t.bytes()
		}
		peers += 5*len(c.of) + 4*c.listed + 24*len(c.lists)
	}
	for r := range s.ranks {
		if m := s.ranks[r].more; m != nil {
			more += moreSize + eventSize*(cap(m.early)+cap(m.pending)) + 4*(cap(m.held)+cap(m.under))
		}
	}
	path := 0
	if s.path != nil {
		path = 12 * len(s.state)
	}
	return []Memory{{"ranks", rankSize * s.size}, {"operations", 4 * len(s.state)}, {"schedules", templates}, {"peers", peers},
		{"waiting", more}, {"events", eventSize * s.q.most}, {"rails and hosts", 16*2*len(s.tx) + 80*len(s.hosts)}, {"path", path}}
}

// BytesPerRank is the sum of Memory divided by the ranks.
func (x *Result) BytesPerRank() float64 {
	sum := 0
	for _, m := range x.Memory {
		sum += m.Bytes
	}
	return float64(sum) / float64(x.Ranks)
}
