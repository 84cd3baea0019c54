package advise

import (
	"cmp"
	"slices"

	"github.com/muster-mpi/muster/internal/trace"
)

// Finding is one thing to change.
type Finding struct {
	Problem  string   `json:"problem"` // a name in questions
	Sites    []string `json:"sites"`   // file and line, the one to change first
	Ranks    []int    `json:"ranks"`   // those concerned first; empty: all
	Gain     float64  `json:"gain"`    // at most this share of the run time
	Evidence string   `json:"evidence"`
	Change   string   `json:"change"`

	// Prediction is nil if the trace does not show what the change brings.
	Prediction *Prediction `json:"prediction,omitempty"`

	change func(*whatIf)
}

// Prediction is the time of the run in seconds as recorded, and as replayed with a change of a
// finding. ReplayError is the relative error of a replay without any change. Part is the share
// of the calls that were replayed, the first of each rank.
type Prediction struct {
	Now         float64 `json:"now_s"`
	Then        float64 `json:"predicted_s"`
	ReplayError float64 `json:"replay_error"`
	Part        float64 `json:"replayed_part"`
}

// leastGain is the smallest gain that is reported. Runs of a program differ by more than that.
const leastGain = 0.01

// questions are the problems that Find looks for.
var questions = []struct {
	name string
	ask  func(*job) []Finding
}{
	{"load imbalance", (*job).imbalances},
	{"message to each rank, one by one", (*job).fanouts},
	{"short messages between all ranks, one by one", (*job).exchanges},
	{"many short messages", (*job).bursts},
	{"many short collectives", (*job).shortCollectives},
	{"barrier before a collective", (*job).barriers},
	{"ranks without work", (*job).idleRanks},
	{"wait without computation", (*job).idleWaits},
	{"receive posted late", (*job).lateReceives},
	{"late ranks at a collective", (*job).lateAtCollectives},
	{"placement of ranks", (*job).placements},
	{"more ranks than cores", (*job).sharedCores},
	{"layout packed at each call", (*job).packings},
}

// job is the trace with what several questions need.
type job struct {
	*trace.Trace
	*trace.Analysis
	span float64 // ns
	late [][]int64
}

func newJob(t *trace.Trace) *job {
	j := &job{Trace: t, Analysis: t.AnalyzeWaits()}
	j.Begin = min(j.Begin, 0) // the computation before the first call is a part of the run
	j.span = float64(j.End - j.Begin)
	return j
}

// Find returns what to change, the largest gain first.
func Find(t *trace.Trace) []Finding {
	j := newJob(t)
	if j.span <= 0 {
		return nil
	}
	var all []Finding
	for _, q := range questions {
		for _, f := range q.ask(j) {
			if f.Problem = q.name; f.Gain >= leastGain {
				all = append(all, f)
			}
		}
	}
	j.predict(all)
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(b.Gain, a.Gain) })
	return all
}

// event returns a call.
func (j *job) event(a trace.At) *trace.Event { return &j.Trace.Ranks[a.Rank].Events[a.Event] }

// rank returns the rank of a call in the world.
func (j *job) rank(a trace.At) int { return j.Trace.Ranks[a.Rank].Rank }

// callAt identifies a call by its indices.
func callAt(rank, event int) trace.At { return trace.At{Rank: int32(rank), Event: int32(event)} }

// siteOf names the call site of a call; the name of the call alone is a poor one.
func siteOf(e *trace.Event) string {
	if e.Site == "" {
		return "unknown place (" + e.Name + ")"
	}
	return e.Site + " (" + e.Name + ")"
}

// perRank sums up times by rank, of one group of calls.
type perRank map[int]float64

// most returns the rank with the longest time.
func (p perRank) most() (rank int, time, total float64) {
	rank = -1
	for r, t := range p {
		total += t
		if t > time || t == time && (rank < 0 || r < rank) {
			rank, time = r, t
		}
	}
	return rank, time, total
}

// ranks returns the ranks, those with the longest times first.
func (p perRank) ranks() []int {
	var all []int
	for r := range p {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Or(cmp.Compare(p[b], p[a]), cmp.Compare(a, b)) })
	return all
}

// Times divides the time of the trace into equal parts and returns the share of each that the
// ranks spend at the call site to change first.
func (f *Finding) Times(t *trace.Trace, parts int) []float64 {
	span, times := t.Span(), make([]float64, parts)
	width := float64(max(span.End-span.Begin, 1)) / float64(parts)
	for _, k := range t.Ranks {
		for i := range k.Events {
			e := &k.Events[i]
			if len(f.Sites) == 0 || siteOf(e) != f.Sites[0] {
				continue
			}
			from, to := float64(e.Begin-span.Begin)/width, float64(e.End-span.Begin)/width
			for p := max(0, int(from)); p < parts && float64(p) < to; p++ {
				times[p] += (min(to, float64(p+1)) - max(from, float64(p))) / float64(len(t.Ranks))
			}
		}
	}
	return times
}
