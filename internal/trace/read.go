package trace

// Reading the file.

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Trace is the timeline of a job, with its ranks in order.
type Trace struct {
	Ranks []*Rank
}

// Hosts returns the number of the host of each element of Ranks, and how many there are. Hosts
// differ in their names or in their nodes.
func (t *Trace) Hosts() (of []int, n int) {
	type name struct {
		host string
		node int
	}
	numbers := map[name]int{}
	for _, r := range t.Ranks {
		k := name{r.Host, r.Node}
		if _, ok := numbers[k]; !ok {
			numbers[k] = len(numbers)
		}
		of = append(of, numbers[k])
	}
	return of, len(numbers)
}

// entry is an element of traceEvents.
type entry struct {
	Ph   string          `json:"ph"`
	Pid  int             `json:"pid"`
	Tid  int             `json:"tid"`
	Ts   json.Number     `json:"ts"`
	Dur  json.Number     `json:"dur"`
	Name string          `json:"name"`
	Cat  string          `json:"cat"`
	Args json.RawMessage `json:"args"`
}

// args are the arguments of a call. Those with the same names as fields of Event are these.
type args struct {
	Comm    int32  `json:"c"`
	Peer    *int32 `json:"peer"`
	Tag     *int32 `json:"tag"`
	Bytes   int    `json:"bytes"`
	Calls   int32  `json:"calls"`
	Packing int32  `json:"packing_ns"`
	Sent    *int32 `json:"sent"` // SendNumber
	From    *int32 `json:"from"`
	FromTag int32  `json:"fromtag"`
	Got     int    `json:"got"`  // FromBytes
	Recv    int32  `json:"recv"` // RecvNumber
	Starts  bool   `json:"starts"`
	By      *int32 `json:"by"`
	Nth     *int32 `json:"nth"`
	Site    string `json:"site"`
	Count   int    `json:"count"` // of a phase, as the next
	Sends   bool   `json:"sends"`
}

// nanos parses a time in microseconds. Digits beyond nanoseconds are dropped.
func nanos(n json.Number) (int64, error) {
	if n == "" {
		return 0, errors.New("missing")
	}
	whole, frac, _ := strings.Cut(string(n), ".")
	for len(frac) < 3 {
		frac += "0"
	}
	return strconv.ParseInt(whole+frac[:3], 10, 64)
}

// span returns the times of a slice.
func (x *entry) span() (begin, end int64, err error) {
	begin, err = nanos(x.Ts)
	if err != nil {
		return 0, 0, fmt.Errorf("ts: %w", err)
	}
	dur, err := nanos(x.Dur)
	if err != nil || dur < 0 {
		return 0, 0, fmt.Errorf("dur is %q", x.Dur)
	}
	return begin, begin + dur, nil
}

func or(p *int32, otherwise int32) int32 {
	if p == nil {
		return otherwise
	}
	return *p
}

// Read parses a file that "muster run --trace" has written. A trace that it returns is
// consistent: indices are valid, and calls end after they begin.
func Read(text []byte) (*Trace, error) {
	var file struct {
		OtherData struct {
			Format string `json:"format"`
		} `json:"otherData"`
		TraceEvents []entry `json:"traceEvents"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("trace: not a complete trace: %w", err)
	}
	if file.OtherData.Format != format {
		return nil, fmt.Errorf("trace: the format is %q; want %q, a file that \"muster run --trace\" of this version has written", file.OtherData.Format, format)
	}
	r := reader{ranks: map[int]*Rank{}, labels: Labels{}, messages: map[int]int{}}
	for i := range file.TraceEvents {
		if err := r.element(&file.TraceEvents[i]); err != nil {
			return nil, fmt.Errorf("trace: element %d of traceEvents: %w", i, err)
		}
	}
	return r.trace()
}

// trace returns what was read, if it is consistent.
func (r *reader) trace() (*Trace, error) {
	t := &Trace{}
	for _, rank := range r.ranks {
		t.Ranks = append(t.Ranks, rank)
	}
	slices.SortFunc(t.Ranks, func(a, b *Rank) int { return a.Rank - b.Rank })
	for _, rank := range t.Ranks {
		if err := rank.valid(); err != nil {
			return nil, fmt.Errorf("trace: rank %d: %w", rank.Rank, err)
		}
	}
	return t, nil
}

type reader struct {
	ranks    map[int]*Rank
	labels   Labels
	messages map[int]int // of a thread, the index of its last phase
}

func (r *reader) rankOf(pid int) *Rank {
	if r.ranks[pid] == nil {
		r.ranks[pid] = &Rank{Rank: pid - 1}
	}
	return r.ranks[pid]
}

func (r *reader) element(x *entry) error {
	if x.Pid < 1 {
		return fmt.Errorf("pid is %d", x.Pid)
	}
	switch x.Ph {
	case "M":
		if x.Name == "process_name" {
			return r.rankOf(x.Pid).describe(x.Args)
		}
	case "X":
		return r.slice(x)
	case "i":
		if x.Cat == RowNetwork {
			x.Dur = "0"
			return r.slice(x)
		}
		return json.Unmarshal(x.Args, &r.rankOf(x.Pid).Counters)
	}
	return nil
}

func (k *Rank) describe(text []byte) error {
	var a rankArgs
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	k.Host, k.Node, k.Dropped, k.Offset, k.Error, k.Comms = a.Host, a.Node, a.Dropped, a.Offset, a.Error, nil
	k.Cores, k.CPUs, k.CPUTime = a.Cores, a.CPUs, a.CPUTime
	for _, c := range a.Comms {
		k.Comms = append(k.Comms, Comm(c))
	}
	return nil
}

func (r *reader) slice(x *entry) error {
	rank := r.rankOf(x.Pid)
	begin, end, err := x.span()
	if err != nil {
		return err
	}
	if x.Cat == catStep {
		i, ok := r.messages[x.Tid]
		if !ok || i >= len(rank.Phases) {
			return errors.New("a step without a message")
		}
		p := &rank.Phases[i]
		p.Steps = append(p.Steps, Step{x.Name, begin})
		return nil
	}
	var a args
	if err := json.Unmarshal(x.Args, &a); err != nil {
		return err
	}
	switch x.Cat {
	case RowProtocol, RowProgress, RowAsleep, RowNetwork:
		r.messages[x.Tid] = len(rank.Phases)
		rank.Phases = append(rank.Phases, Phase{Row: x.Cat, Name: x.Name, Begin: begin, End: end, Peer: int(or(a.Peer, None)), Tag: int(or(a.Tag, -1)), Bytes: a.Bytes, Count: a.Count, Sends: a.Sends})
	default:
		rank.Events = append(rank.Events, Event{Label: r.labels.Of(Label{x.Name, x.Cat, a.Site}), Begin: begin, End: end, Comm: a.Comm,
			Peer: or(a.Peer, None), Tag: or(a.Tag, -1), Bytes: a.Bytes, Calls: a.Calls, Packing: a.Packing, Sends: a.Sent != nil, SendNumber: or(a.Sent, 0),
			From: or(a.From, None), FromTag: a.FromTag, FromBytes: a.Got, RecvNumber: a.Recv, Starts: a.Starts, By: or(a.By, -1), Nth: or(a.Nth, 0)})
	}
	return nil
}

// valid checks the indices.
func (k *Rank) valid() error {
	for i := range k.Events {
		e := &k.Events[i]
		if e.By < -1 || int(e.By) >= len(k.Events) {
			return fmt.Errorf("call %d was completed by call %d of %d", i, e.By, len(k.Events))
		}
		if e.Comm < 0 || int(e.Comm) >= len(k.Comms) {
			return fmt.Errorf("call %d is on communicator %d of %d", i, e.Comm, len(k.Comms))
		}
	}
	return nil
}
