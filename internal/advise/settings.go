package advise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/trace"
)

// Entry is a setting that may make a program faster. Only a measurement shows whether it does.
type Entry struct {
	Name  string `json:"name"` // a variable, or MapBy
	Value string `json:"value"`
	Why   string `json:"why"`
}

// MapBy is the name of the entry for the placement of ranks, which is not a variable. Its value is
// that of the flag --map-by, with Trace in place of the trace.
const (
	MapBy = "map-by"
	Trace = "TRACE"
)

const (
	leastShare   = 0.02 // of the time of all ranks in calls that an entry is about
	alternatives = 2    // algorithms proposed for a collective and size
)

// Propose returns the settings to try for the program of a trace, in the order in which to try
// them. Several may have the same name: they exclude each other.
func Propose(t *trace.Trace) (all []Entry) {
	j := newJob(t)
	if j.span <= 0 {
		return nil
	}
	for _, f := range j.placements() {
		all = append(all, Entry{MapBy, "traffic=" + Trace, f.Evidence})
	}
	all = append(all, j.forTransfers()...)
	return append(all, j.forCollectives()...)
}

// forTransfers proposes settings for long messages, and for those just too long to be eager.
func (j *job) forTransfers() (all []Entry) {
	var long, ahead, hidden, credit int
	var time float64
	for _, m := range j.Messages {
		send, recv := j.event(m.Send), j.event(m.Recv)
		if send.Bytes < longMessage {
			if send.Begin < recv.Begin {
				credit += send.Bytes
			}
			continue
		}
		long++
		if recv.Begin < send.Begin {
			ahead++
		}
		for _, at := range []trace.At{m.Send, m.Recv} {
			e := j.event(at)
			time += float64(e.End - e.Begin)
			if e.Starts && e.By >= 0 {
				wait := j.event(trace.At{Rank: at.Rank, Event: e.By})
				time += float64(wait.End - wait.Begin)
				if wait.Begin-e.End > wait.End-wait.Begin {
					hidden++
				}
			}
		}
	}
	if long == 0 || time < leastShare*j.span*float64(len(j.Trace.Ranks)) {
		return nil
	}
	seen := fmt.Sprintf("%d messages of %d KB and more, %d of them with a receive that was posted first", long, longMessage>>10, ahead)
	if 2*ahead > long {
		all = append(all, Entry{"MUSTER_SPECULATE", "always", seen})
	} else {
		all = append(all, Entry{"MUSTER_SPECULATE", "never", seen})
	}
	if 4*hidden > long {
		all = append(all, Entry{"MUSTER_PROGRESS", "async", fmt.Sprintf("%d transfers of long messages have computation beside them", hidden)})
	}
	if 2*ahead < long {
		all = append(all, Entry{"MUSTER_EAGER_LIMIT", fmt.Sprint(longMessage), "most long messages are sent before their receive is posted, and would be copied twice"})
	}
	if credit > 8<<20 {
		all = append(all, Entry{"MUSTER_CREDIT", fmt.Sprint(32 << 20), fmt.Sprintf("%d MB of short messages were sent before their receive was posted", credit>>20)})
	}
	return all
}

// forCollectives proposes the other algorithms with the lowest estimated costs for the
// collectives that take long, by the size that takes most of it.
func (j *job) forCollectives() (all []Entry) {
	type use struct {
		time  float64
		calls int
	}
	uses := map[coll.Kind]map[int]*use{}
	waited := j.lateParts()
	_, nodes := j.Trace.Hosts()
	for _, calls := range j.Collectives {
		e := j.event(calls[0])
		kind, form, ok := coll.KindOfFunction(strings.TrimSuffix(e.Name, "Value"))
		if !ok || form != coll.Blocking || len(calls) < len(j.Trace.Ranks) {
			continue
		}
		if uses[kind] == nil {
			uses[kind] = map[int]*use{}
		}
		u := uses[kind][e.Bytes]
		if u == nil {
			u = &use{}
			uses[kind][e.Bytes] = u
		}
		for _, c := range calls {
			u.calls++
			u.time += float64(j.event(c).End - j.event(c).Begin - waited[c.Rank][c.Event])
		}
	}
	for kind := range coll.Kind(coll.Kinds) {
		total, most, bytes := 0.0, -1.0, 0
		for b, u := range uses[kind] {
			total += u.time
			if u.time > most || u.time == most && b < bytes {
				most, bytes = u.time, b
			}
		}
		if total < leastShare*j.span*float64(len(j.Trace.Ranks)) {
			continue
		}
		for _, a := range rankAlgorithms(kind, len(j.Trace.Ranks), nodes, bytes) {
			all = append(all, Entry{"MUSTER_COLLECTIVE", kind.String() + "=" + a,
				fmt.Sprintf("%d calls of %s, most of the time with %d bytes: %.0f %% of the run time", uses[kind][bytes].calls, kind, bytes, 100*total/(j.span*float64(len(j.Trace.Ranks))))})
		}
	}
	return all
}

// rankAlgorithms returns algorithms for a collective: those with the lowest costs on a network of
// which only the proportions are known. One of them is probably the default.
func rankAlgorithms(kind coll.Kind, ranks, nodes, bytes int) (names []string) {
	s := coll.EqualBlocks(kind, 0, ranks, 0, bytes)
	m := coll.Model{Startup: 20e-6, PerByte: 1e-9, Copy: 1e-10, Reduce: 2e-10, Ports: 1}
	if nodes == 1 {
		m.Startup, m.PerByte = 1e-6, 2e-10
	}
	choice, err := coll.Choose(&s, &m, nil)
	if err != nil {
		return nil
	}
	for _, r := range choice.Ranking[:min(len(choice.Ranking), alternatives)] {
		if name := r.Algorithm.Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
