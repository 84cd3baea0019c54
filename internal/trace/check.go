package trace

// The rules of the file. They are those of the Trace Event Format ("Trace Event Format",
// Google, section "JSON Object Format" and the sections of the phases X, s, f, i and M), and
// what the JSON importer of Perfetto's trace processor requires beyond it:
//
//   - The text is a JSON object with an array traceEvents. Elements have no members but those
//     of the format.
//   - ph is X, s, f, i or M. All have pid, tid and name; all but M have ts; X has dur ≥ 0 and
//     cat; s and f have cat and id; f has bp = "e"; i has the scope s; M has the argument
//     that its name needs.
//   - pid and tid are not 0, which is the kernel's idle task, and a tid belongs to one pid.
//   - An id is hexadecimal with at most 64 bits. Perfetto drops flows with other ids.
//   - The elements of a thread are in the order of time.
//   - Slices of a thread nest.
//   - The ends of a flow are in slices of their threads, and no end occurs twice.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Checked is the result of Check.
type Checked struct {
	Elements int
	Slices   int
	Flows    int // with both ends
	Open     int // flows without the other end
	// Backward is the number of flows that end before they begin, and Most by how many ns.
	// Only differences between clocks can cause it.
	Backward int
	Most     int64
}

// element is an element of traceEvents with every member that the format permits here.
type element struct {
	Ph   string                     `json:"ph"`
	Pid  *int64                     `json:"pid"`
	Tid  *int64                     `json:"tid"`
	Ts   json.Number                `json:"ts"`
	Dur  json.Number                `json:"dur"`
	Name string                     `json:"name"`
	Cat  string                     `json:"cat"`
	ID   string                     `json:"id"`
	Bp   string                     `json:"bp"`
	S    string                     `json:"s"`
	Args map[string]json.RawMessage `json:"args"`
}

// metadataArgs are the names of metadata, and the argument that each needs.
var metadataArgs = map[string]string{"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index", "process_labels": "labels"}

// Check checks a file against the rules above. The error names the first element that breaks
// one.
func Check(text []byte) (*Checked, error) {
	var file struct {
		DisplayTimeUnit string            `json:"displayTimeUnit"`
		OtherData       map[string]string `json:"otherData"`
		TraceEvents     []element         `json:"traceEvents"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	if u := file.DisplayTimeUnit; u != "ns" && u != "ms" {
		return nil, fmt.Errorf("trace: displayTimeUnit is %q", u)
	}
	if file.TraceEvents == nil {
		return nil, errors.New("trace: no traceEvents")
	}
	c := &checker{threads: map[int64]*thread{}, flows: map[uint64]*flow{}}
	for i := range file.TraceEvents {
		x := &file.TraceEvents[i]
		if err := c.element(x); err != nil {
			return nil, fmt.Errorf("trace: element %d (ph %q, name %q): %w", i, x.Ph, x.Name, err)
		}
	}
	c.Elements = len(file.TraceEvents)
	for _, f := range c.flows {
		if f.ends != 3 {
			c.Open++
			continue
		}
		c.Flows++
		if late := f.begin - f.end; late > 0 {
			c.Backward++
			c.Most = max(c.Most, late)
		}
	}
	return &c.Checked, nil
}

// thread is a row: its process, the time of its last element, and the ends of its open slices.
type thread struct {
	pid, last int64
	open      []int64
}

type flow struct {
	begin, end int64
	ends       int // 1: begins, 2: ends
}

type checker struct {
	Checked
	threads map[int64]*thread
	flows   map[uint64]*flow
}

func (c *checker) element(x *element) error {
	switch {
	case x.Pid == nil || *x.Pid <= 0:
		return errors.New("pid is missing or not positive")
	case x.Tid == nil || *x.Tid <= 0:
		return errors.New("tid is missing or not positive")
	case x.Name == "":
		return errors.New("no name")
	}
	t := c.threads[*x.Tid]
	if t == nil {
		t = &thread{pid: *x.Pid, last: -1 << 63}
		c.threads[*x.Tid] = t
	}
	if t.pid != *x.Pid {
		return fmt.Errorf("thread %d is in the processes %d and %d", *x.Tid, t.pid, *x.Pid)
	}
	if x.Ph == "M" {
		if want := metadataArgs[x.Name]; want == "" || x.Args[want] == nil {
			return fmt.Errorf("metadata without the argument %q", want)
		}
		return nil
	}
	at, err := nanos(x.Ts)
	if err != nil {
		return fmt.Errorf("ts: %w", err)
	}
	if at < t.last {
		return fmt.Errorf("it is at %d ns and follows an element at %d ns of its thread", at, t.last)
	}
	t.last = at
	switch x.Ph {
	case "X":
		return c.slice(x, t, at)
	case "s", "f":
		return c.flow(x, t, at)
	case "i":
		if !slices.Contains([]string{"t", "p", "g"}, x.S) {
			return fmt.Errorf("the scope is %q", x.S)
		}
		return nil
	}
	return errors.New("a phase that is not used")
}

func (c *checker) slice(x *element, t *thread, at int64) error {
	dur, err := nanos(x.Dur)
	if err != nil || dur < 0 {
		return fmt.Errorf("dur is %q", x.Dur)
	}
	if x.Cat == "" {
		return errors.New("no cat")
	}
	for len(t.open) > 0 && t.open[len(t.open)-1] <= at {
		t.open = t.open[:len(t.open)-1]
	}
	if n := len(t.open); n > 0 && t.open[n-1] < at+dur {
		return fmt.Errorf("it ends at %d ns, after the slice around it, which ends at %d ns", at+dur, t.open[n-1])
	}
	t.open = append(t.open, at+dur)
	c.Slices++
	return nil
}

func (c *checker) flow(x *element, t *thread, at int64) error {
	id, err := strconv.ParseUint(x.ID, 16, 64)
	if err != nil || x.Cat == "" {
		return fmt.Errorf("the id is %q and cat %q; want a hexadecimal number and a text", x.ID, x.Cat)
	}
	for len(t.open) > 0 && t.open[len(t.open)-1] < at {
		t.open = t.open[:len(t.open)-1]
	}
	if len(t.open) == 0 {
		return fmt.Errorf("the flow %s is in no slice of its thread", x.ID)
	}
	f := c.flows[id]
	if f == nil {
		f = &flow{}
		c.flows[id] = f
	}
	end := 1
	if x.Ph == "f" {
		if end = 2; x.Bp != "e" {
			return fmt.Errorf("bp is %q; want e: the flow ends in the slice around it", x.Bp)
		}
		f.end = at
	} else {
		f.begin = at
	}
	if f.ends&end != 0 {
		return fmt.Errorf("the flow %s has this end twice", x.ID)
	}
	f.ends |= end
	return nil
}
