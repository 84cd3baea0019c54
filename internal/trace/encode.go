package trace

// The file: the Trace Event Format of Chrome and Perfetto, in its JSON object form. The rules
// that it obeys are in check.go.
//
//	X  a call, with its arguments and what the analysis needs, or a phase
//	s  the beginning of a flow, in the call that sends a message
//	f  its end, in the call that completed the receive
//	M  the names of processes and threads; a rank is a process, and a row is a thread
//	i  a retransmission; the counters of a rank, at its end
//
// Process 0 and thread 0 are the idle task of the kernel for the Perfetto UI, and it
// expects a thread to be in one process only. So rank r is process r+1, and its rows are the
// threads (r+1)·1000 and following.
//
// The two ends of a flow have the same identifier, a hash of source, destination, context,
// tag and number of the message. It is hexadecimal: the Perfetto UI ignores flows with any
// other text.
//
// The text is built without reflection: a job ends when its trace is written.

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Rank is what a rank contributes to the trace.
type Rank struct {
	Rank    int
	Host    string
	Node    int // as the launcher counts; several may have the name of one machine
	Dropped int // calls and phases that were not recorded because the limit was reached
	// Offset was added to the rank's clock, in ns: it is the difference to the clock of rank
	// 0. Error is the bound of its error; 0 means that both are one clock.
	Offset, Error int64
	// Cores is the number of CPUs of the host, or 0 if not known. CPUs are those that the rank
	// may use, as ranges with their last; nil: not known. CPUTime is what its process has used,
	// in ns; 0: not known.
	Cores   int
	CPUs    [][2]int
	CPUTime int64
	Comms   []Comm
	Events  []Event // in the order in which they began
	Phases  []Phase // likewise
	// Counters are values of the rank at the end, such as retransmissions.
	Counters map[string]uint64
}

// format is the version of the file.
const format = "muster trace 2"

// Header and Footer are the beginning and end of the file. Between them are the texts of
// the ranks.
const (
	Header = `{"displayTimeUnit":"ns","otherData":{"format":"` + format + `"},"traceEvents":[` + "\n"
	Footer = `{"ph":"M","pid":1,"tid":1000,"name":"process_labels","args":{"labels":"muster"}}]}` + "\n"
)

// Threads of a process, relative to its first.
const (
	threads       = 1000
	firstCall     = 0
	firstProgress = 400
	firstAsleep   = 401
	firstNetwork  = 402
	firstProtocol = 500
	// Rows of calls, and of messages, at one time. Calls beyond share the last row, and
	// messages beyond are left out.
	callRows     = firstProgress - firstCall
	protocolRows = threads - firstProtocol
)

// text appends elements of traceEvents.
type text struct {
	b   []byte
	pid int
}

// begin appends the beginning of an element.
func (t *text) begin(ph byte, thread int, name, cat string) {
	t.b = append(t.b, `{"ph":"`...)
	t.b = append(t.b, ph)
	t.b = append(t.b, `","pid":`...)
	t.b = strconv.AppendInt(t.b, int64(t.pid), 10)
	t.b = append(t.b, `,"tid":`...)
	t.b = strconv.AppendInt(t.b, int64(t.pid*threads+thread), 10)
	t.b = append(t.b, `,"name":`...)
	t.quote(name)
	if cat != "" {
		t.b = append(t.b, `,"cat":"`...)
		t.b = append(append(t.b, cat...), '"')
	}
}

// end ends an element.
func (t *text) end() { t.b = append(t.b, "},\n"...) }

// quote appends a text that has no character to be escaped, or else escapes it.
func (t *text) quote(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			b, err := json.Marshal(s)
			if err != nil {
				panic("trace: a text cannot be encoded: " + err.Error())
			}
			t.b = append(t.b, b...)
			return
		}
	}
	t.b = append(append(append(t.b, '"'), s...), '"')
}

// time appends a member with a time in microseconds, the unit of the format, without loss.
func (t *text) time(name string, ns int64) {
	t.b = append(append(t.b, name...), ':')
	if ns < 0 {
		t.b, ns = append(t.b, '-'), -ns
	}
	t.b = strconv.AppendInt(t.b, ns/1000, 10)
	frac := ns % 1000
	t.b = append(t.b, '.', byte('0'+frac/100), byte('0'+frac/10%10), byte('0'+frac%10))
}

// appendNumber appends a member.
func appendNumber[T int | int32](t *text, name string, n T) {
	t.b = append(append(t.b, name...), ':')
	t.b = strconv.AppendInt(t.b, int64(n), 10)
}

// slice appends a slice up to its arguments.
func (t *text) slice(thread int, name, cat string, begin, end int64) {
	t.begin('X', thread, name, cat)
	t.time(`,"ts"`, begin)
	t.time(`,"dur"`, end-begin)
}

// flow appends the beginning (s) or end (f) of a flow.
func (t *text) flow(ph byte, thread int, at int64, id uint64) {
	t.begin(ph, thread, "message", "message")
	t.time(`,"ts"`, at)
	t.b = append(t.b, `,"id":"`...)
	t.b = strconv.AppendUint(t.b, id, 16)
	t.b = append(t.b, '"')
	if ph == 'f' {
		t.b = append(t.b, `,"bp":"e"`...)
	}
	t.end()
}

// flowID identifies a message: FNV-1a of its numbers. Among a million messages two have the
// same with a probability of 10⁻⁷.
func flowID(src, dst int32, context uint32, tag, number int32) uint64 {
	h := uint64(14695981039346656037)
	for _, v := range [...]uint32{uint32(src), uint32(dst), context, uint32(tag), uint32(number)} {
		for range 4 {
			h = (h ^ uint64(v&0xff)) * 1099511628211
			v >>= 8
		}
	}
	return h
}

// metadata appends a name of the process or of a thread.
func (t *text) metadata(thread int, name string, args any) {
	t.begin('M', thread, name, "")
	b, err := json.Marshal(args)
	if err != nil {
		panic("trace: plain values cannot be encoded: " + err.Error())
	}
	t.b = append(append(t.b, `,"args":`...), b...)
	t.end()
}

// rankArgs are the arguments of the process of a rank.
type rankArgs struct {
	Name    string     `json:"name"`
	Host    string     `json:"host"`
	Node    int        `json:"node,omitempty"`
	Dropped int        `json:"dropped"`
	Offset  int64      `json:"clock_offset_ns"`
	Error   int64      `json:"clock_error_ns"`
	Cores   int        `json:"cores,omitempty"`
	CPUs    [][2]int   `json:"cpus,omitempty"`
	CPUTime int64      `json:"cpu_time_ns,omitempty"`
	Comms   []commArgs `json:"comms"`
}

type commArgs struct {
	Name    string `json:"name"`
	Context uint32 `json:"ctx"`
	Ranks   []int  `json:"ranks,omitempty"`
}

type nameArgs struct {
	Name string `json:"name"`
}

// Append appends the text of a rank. The events must have been numbered.
func Append(b []byte, r *Rank) []byte {
	t := &text{b: slices.Grow(b, 200*len(r.Events)), pid: r.Rank + 1}
	var comms []commArgs
	for _, c := range r.Comms {
		comms = append(comms, commArgs(c))
	}
	t.metadata(0, "process_name", rankArgs{fmt.Sprintf("rank %d (%s)", r.Rank, r.Host), r.Host, r.Node, r.Dropped, r.Offset, r.Error, r.Cores, r.CPUs, r.CPUTime, comms})
	t.metadata(0, "process_sort_index", map[string]int{"sort_index": r.Rank})
	last := t.calls(r)
	last = max(last, t.phases(r))
	if len(r.Counters) > 0 {
		t.begin('i', firstNetwork, "counters", "counters")
		t.time(`,"ts"`, last)
		t.b = append(t.b, `,"s":"p","args":{`...)
		for i, name := range slices.Sorted(maps.Keys(r.Counters)) {
			if i > 0 {
				t.b = append(t.b, ',')
			}
			t.quote(name)
			t.b = append(t.b, ':')
			t.b = strconv.AppendUint(t.b, r.Counters[name], 10)
		}
		t.b = append(t.b, '}')
		t.end()
	}
	return t.b
}

// calls appends the calls and the flows, in the order of time in each row. It returns the
// end of the last.
func (t *text) calls(r *Rank) (last int64) {
	n := len(r.Events)
	rows := lanes(n, func(i int) (int64, int64) { return r.Events[i].Begin, r.Events[i].End })
	for row := range min(callRows, 1+slices.Max(append([]int{0}, rows...))) {
		name := "calls"
		if row > 0 {
			name = fmt.Sprintf("calls %d", row+1)
		}
		t.metadata(firstCall+row, "thread_name", nameArgs{name})
	}
	// received[i] is the first receive that call i has completed, and next the following.
	received, next := make([]int32, n), make([]int32, n)
	for i := n - 1; i >= 0; i-- {
		if e := &r.Events[i]; e.From >= 0 {
			by := i
			if e.Starts && e.By >= 0 {
				by = int(e.By)
			}
			next[i], received[by] = received[by], int32(i+1)
		}
	}
	for i := range r.Events {
		e := &r.Events[i]
		last = max(last, e.End)
		row := firstCall + min(rows[i], callRows-1)
		t.slice(row, e.Name, e.Kind, e.Begin, e.End)
		t.args(e, r.Comms[e.Comm].Name)
		t.end()
		if e.Sends {
			t.flow('s', row, e.Begin, flowID(int32(r.Rank), e.Peer, r.Comms[e.Comm].Context, e.Tag, e.SendNumber))
		}
		for k := received[i]; k != 0; k = next[k-1] {
			m := &r.Events[k-1]
			t.flow('f', row, max(e.Begin, e.End-1), flowID(m.From, int32(r.Rank), r.Comms[m.Comm].Context, m.FromTag, m.RecvNumber))
		}
	}
	return last
}

// args appends the arguments of a call; args of read.go has their names.
func (t *text) args(e *Event, comm string) {
	t.b = append(t.b, `,"args":{"comm":`...)
	t.quote(comm)
	appendNumber(t, `,"c"`, e.Comm)
	if e.Peer != None {
		appendNumber(t, `,"peer"`, e.Peer)
	}
	if e.Sends || e.Peer != None && e.Tag >= 0 {
		appendNumber(t, `,"tag"`, e.Tag)
	}
	if e.Bytes != 0 {
		appendNumber(t, `,"bytes"`, e.Bytes)
	}
	if e.Calls != 0 {
		appendNumber(t, `,"calls"`, e.Calls)
	}
	if e.Packing != 0 {
		appendNumber(t, `,"packing_ns"`, e.Packing)
	}
	if e.Sends {
		appendNumber(t, `,"sent"`, e.SendNumber)
	}
	if e.From >= 0 {
		appendNumber(t, `,"from"`, e.From)
		appendNumber(t, `,"fromtag"`, e.FromTag)
		appendNumber(t, `,"got"`, e.FromBytes)
		appendNumber(t, `,"recv"`, e.RecvNumber)
	}
	if e.Starts {
		t.b = append(t.b, `,"starts":true`...)
		if e.By >= 0 {
			appendNumber(t, `,"by"`, e.By)
		}
	}
	if e.Kind == kindCollective {
		appendNumber(t, `,"nth"`, e.Nth)
	}
	if e.Site != "" {
		t.b = append(t.b, `,"site":`...)
		t.quote(e.Site)
	}
	t.b = append(t.b, '}')
}

// phases appends the phases. It returns the end of the last.
func (t *text) phases(r *Rank) (last int64) {
	var messages []*Phase
	named := map[string]bool{}
	for i := range r.Phases {
		p := &r.Phases[i]
		last = max(last, p.End)
		thread := firstNetwork
		switch p.Row {
		case RowProtocol:
			messages = append(messages, p)
			continue
		case RowProgress:
			thread = firstProgress
		case RowAsleep:
			thread = firstAsleep
		}
		if !named[p.Row] {
			named[p.Row] = true
			t.metadata(thread, "thread_name", nameArgs{p.Row})
		}
		if p.Row == RowNetwork {
			t.begin('i', thread, p.Name, p.Row)
			t.time(`,"ts"`, p.Begin)
			t.b = append(t.b, `,"s":"t"`...)
		} else {
			t.slice(thread, p.Name, p.Row, p.Begin, p.End)
		}
		t.phaseArgs(p)
		t.end()
	}
	rows := lanes(len(messages), func(i int) (int64, int64) { return messages[i].Begin, messages[i].End })
	for row := range min(protocolRows, 1+slices.Max(append([]int{-1}, rows...))) {
		name := RowProtocol
		if row > 0 {
			name = fmt.Sprintf("%s %d", RowProtocol, row+1)
		}
		t.metadata(firstProtocol+row, "thread_name", nameArgs{name})
	}
	for i, p := range messages {
		if rows[i] >= protocolRows {
			continue
		}
		row := firstProtocol + rows[i]
		t.slice(row, p.Name, p.Row, p.Begin, p.End)
		t.phaseArgs(p)
		t.end()
		for k, s := range p.Steps {
			end := p.End
			if k+1 < len(p.Steps) {
				end = p.Steps[k+1].At
			}
			t.slice(row, s.Name, catStep, s.At, end)
			t.end()
		}
	}
	return last
}

// catStep is the category of a step, which is within the phase before it in its row.
const catStep = "step"

func (t *text) phaseArgs(p *Phase) {
	t.b = append(t.b, `,"args":{`...)
	appendNumber(t, `"tag"`, p.Tag)
	appendNumber(t, `,"bytes"`, p.Bytes)
	if p.Peer != None {
		appendNumber(t, `,"peer"`, p.Peer)
	}
	if p.Sends {
		t.b = append(t.b, `,"sends":true`...)
	}
	if p.Count != 0 {
		appendNumber(t, `,"count"`, p.Count)
	}
	t.b = append(t.b, '}')
}
