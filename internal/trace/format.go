package trace

// The file: the Trace Event Format of Chrome and Perfetto, in its JSON object form.
//
//	X  a call, with its arguments and what the analysis needs
//	s  the beginning of a flow, in the call that sends a message
//	f  its end, in the call that completed the receive
//	M  the names of processes; a rank is a process, and a row of calls is its thread
//	i  the counters of a rank, at its end
//
// The two ends of a flow have the same identifier: source, destination, context, tag and
// number of the message.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Rank is what a rank contributes to the trace.
type Rank struct {
	Rank    int
	Host    string
	Dropped int   // calls that were not recorded because the limit was reached
	Error   int64 // bound of the error of its clock, in ns
	Events  []Event
	// Counters are values of the rank at the end, such as retransmissions.
	Counters map[string]uint64
}

// Header and Footer are the beginning and end of the file. Between them are the texts of
// the ranks.
const (
	Header = `{"displayTimeUnit":"ns","otherData":{"format":"muster trace 1"},"traceEvents":[` + "\n"
	Footer = `{"ph":"M","pid":0,"tid":0,"name":"process_labels","args":{"labels":"muster"}}]}` + "\n"
)

// entry is an element of traceEvents.
type entry struct {
	Ph   string          `json:"ph"`
	Pid  int             `json:"pid"`
	Tid  int             `json:"tid"`
	Ts   json.Number     `json:"ts,omitempty"`
	Dur  json.Number     `json:"dur,omitempty"`
	Name string          `json:"name"`
	Cat  string          `json:"cat,omitempty"`
	ID   string          `json:"id,omitempty"`
	Bp   string          `json:"bp,omitempty"`
	S    string          `json:"s,omitempty"`
	Args json.RawMessage `json:"args,omitempty"`
}

// args are the arguments of a call. Those with the same names as fields of Event are these.
type args struct {
	Comm    string `json:"comm"`
	Context uint32 `json:"ctx"`
	Lowest  int    `json:"lowest"`
	Peer    *int   `json:"peer,omitempty"`
	Tag     *int   `json:"tag,omitempty"`
	Bytes   int    `json:"bytes,omitempty"`
	Calls   int    `json:"calls,omitempty"`
	Sent    *int   `json:"sent,omitempty"` // SendNumber
	From    *int   `json:"from,omitempty"`
	FromTag int    `json:"fromtag,omitempty"`
	Got     int    `json:"got,omitempty"`  // FromBytes
	Recv    int    `json:"recv,omitempty"` // RecvNumber
	Starts  bool   `json:"starts,omitempty"`
	By      *int   `json:"by,omitempty"`
	Nth     *int   `json:"nth,omitempty"`
}

// rankArgs are the arguments of the process of a rank.
type rankArgs struct {
	Name    string `json:"name"`
	Host    string `json:"host"`
	Dropped int    `json:"dropped"`
	Error   int64  `json:"clock_error_ns"`
}

// micros formats a time in microseconds, the unit of the format, without loss.
func micros(ns int64) json.Number {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return json.Number(fmt.Sprintf("%s%d.%03d", sign, ns/1000, ns%1000))
}

func nanos(n json.Number) (int64, error) {
	whole, frac, _ := strings.Cut(string(n), ".")
	for len(frac) < 3 {
		frac += "0"
	}
	return strconv.ParseInt(whole+frac[:3], 10, 64)
}

// flowID identifies a message.
func flowID(src, dst int, context uint32, tag, number int) string {
	return fmt.Sprintf("%d-%d-%d-%d-%d", src, dst, context, tag, number)
}

// Append appends the text of a rank. The events must have been numbered.
func Append(b []byte, r *Rank) []byte {
	add := func(e entry) {
		text, err := json.Marshal(&e)
		if err != nil {
			panic("trace: plain values cannot be encoded: " + err.Error())
		}
		b = append(append(b, text...), ",\n"...)
	}
	add(entry{Ph: "M", Pid: r.Rank, Name: "process_name", Args: encode(rankArgs{fmt.Sprintf("rank %d (%s)", r.Rank, r.Host), r.Host, r.Dropped, r.Error})})
	add(entry{Ph: "M", Pid: r.Rank, Name: "process_sort_index", Args: encode(map[string]int{"sort_index": r.Rank})})
	lanes := Lanes(r.Events)
	var last int64
	for i := range r.Events {
		e := &r.Events[i]
		last = max(last, e.End)
		add(entry{Ph: "X", Pid: r.Rank, Tid: lanes[i], Ts: micros(e.Begin), Dur: micros(e.End - e.Begin), Name: e.Name, Cat: e.Kind, Args: encode(e.args())})
		if e.Sends {
			add(entry{Ph: "s", Pid: r.Rank, Tid: lanes[i], Ts: micros(e.Begin), Name: "message", Cat: "message",
				ID: flowID(r.Rank, e.Peer, e.Context, e.Tag, e.SendNumber)})
		}
	}
	for i := range r.Events { // by the calls that completed them
		e := &r.Events[i]
		if e.From < 0 {
			continue
		}
		by := i
		if e.Starts && e.By >= 0 {
			by = e.By
		}
		end := &r.Events[by]
		add(entry{Ph: "f", Bp: "e", Pid: r.Rank, Tid: lanes[by], Ts: micros(max(end.Begin, end.End-1)), Name: "message", Cat: "message",
			ID: flowID(e.From, r.Rank, e.Context, e.FromTag, e.RecvNumber)})
	}
	if len(r.Counters) > 0 {
		add(entry{Ph: "i", S: "p", Pid: r.Rank, Ts: micros(last), Name: "counters", Cat: "counters", Args: encode(r.Counters)})
	}
	return b
}

func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic("trace: plain values cannot be encoded: " + err.Error())
	}
	return text
}

func (e *Event) args() args {
	a := args{Comm: e.Comm, Context: e.Context, Lowest: e.Lowest, Bytes: e.Bytes, Calls: e.Calls, Starts: e.Starts}
	if e.Peer != None {
		a.Peer = &e.Peer
	}
	if e.Sends || e.Peer != None && e.Tag >= 0 {
		a.Tag = &e.Tag
	}
	if e.Sends {
		a.Sent = &e.SendNumber
	}
	if e.From >= 0 {
		a.From, a.FromTag, a.Got, a.Recv = &e.From, e.FromTag, e.FromBytes, e.RecvNumber
	}
	if e.Starts && e.By >= 0 {
		a.By = &e.By
	}
	if e.Kind == kindCollective {
		a.Nth = &e.Nth
	}
	return a
}

func or(p *int, otherwise int) int {
	if p == nil {
		return otherwise
	}
	return *p
}

func (a *args) event(x *entry) (Event, error) {
	begin, err := nanos(x.Ts)
	if err != nil {
		return Event{}, fmt.Errorf("ts: %w", err)
	}
	dur, err := nanos(x.Dur)
	if err != nil || dur < 0 {
		return Event{}, fmt.Errorf("dur is %q", x.Dur)
	}
	return Event{Name: x.Name, Kind: x.Cat, Begin: begin, End: begin + dur, Comm: a.Comm, Context: a.Context, Lowest: a.Lowest,
		Peer: or(a.Peer, None), Tag: or(a.Tag, -1), Bytes: a.Bytes, Calls: a.Calls, Sends: a.Sent != nil, SendNumber: or(a.Sent, 0),
		From: or(a.From, None), FromTag: a.FromTag, FromBytes: a.Got, RecvNumber: a.Recv, Starts: a.Starts, By: or(a.By, -1), Nth: or(a.Nth, 0)}, nil
}

// Trace is the timeline of a job, with its ranks in order.
type Trace struct {
	Ranks []*Rank
}

// Read parses the file.
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
	if file.OtherData.Format != "muster trace 1" {
		return nil, fmt.Errorf("trace: the format is %q; want a file that \"muster run --trace\" has written", file.OtherData.Format)
	}
	t := &Trace{}
	ranks := map[int]*Rank{}
	of := func(pid int) *Rank {
		if ranks[pid] == nil {
			ranks[pid] = &Rank{Rank: pid}
			t.Ranks = append(t.Ranks, ranks[pid])
		}
		return ranks[pid]
	}
	for i := range file.TraceEvents {
		x := &file.TraceEvents[i]
		var err error
		switch x.Ph {
		case "M":
			if x.Name == "process_name" {
				var a rankArgs
				err = json.Unmarshal(x.Args, &a)
				r := of(x.Pid)
				r.Host, r.Dropped, r.Error = a.Host, a.Dropped, a.Error
			}
		case "X":
			var a args
			var e Event
			if err = json.Unmarshal(x.Args, &a); err == nil {
				e, err = a.event(x)
			}
			r := of(x.Pid)
			r.Events = append(r.Events, e)
		case "i":
			err = json.Unmarshal(x.Args, &of(x.Pid).Counters)
		}
		if err != nil {
			return nil, fmt.Errorf("trace: element %d of traceEvents: %w", i, err)
		}
	}
	slices.SortFunc(t.Ranks, func(a, b *Rank) int { return a.Rank - b.Rank })
	for _, r := range t.Ranks {
		for i := range r.Events {
			if e := &r.Events[i]; e.By < -1 || e.By >= len(r.Events) {
				return nil, fmt.Errorf("trace: a call of rank %d was completed by call %d of %d", r.Rank, e.By, len(r.Events))
			}
		}
	}
	return t, nil
}
