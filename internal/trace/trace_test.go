package trace

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func send(begin, end int64, to, tag int) Event {
	return Event{Name: "Send", Kind: kindSend, Begin: begin, End: end, Comm: "world", Peer: to, Tag: tag, Bytes: 8, Sends: true, From: None, By: -1}
}

func recv(begin, end int64, from, tag int) Event {
	return Event{Name: "Recv", Kind: "receive", Begin: begin, End: end, Comm: "world", Peer: AnyRank, Tag: -1, From: from, FromTag: tag, FromBytes: 8, By: -1}
}

func coll(name string, begin, end int64, root int) Event {
	return Event{Name: name, Kind: kindCollective, Begin: begin, End: end, Comm: "world", Peer: root, Tag: -1, From: None, By: -1}
}

// job returns a trace that went through the file.
func job(t *testing.T, ranks ...[]Event) *Trace {
	t.Helper()
	text := []byte(Header)
	for r, events := range ranks {
		Number(events)
		text = Append(text, &Rank{Rank: r, Host: "h", Events: events, Counters: map[string]uint64{"retransmissions": 2}})
	}
	text = append(text, Footer...)
	checkFormat(t, text)
	tr, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	for r, events := range ranks {
		if got := tr.Ranks[r].Events; !reflect.DeepEqual(got, events) && len(events) > 0 {
			t.Fatalf("the file changes the events of rank %d:\n%+v\nwere\n%+v", r, got, events)
		}
	}
	return tr
}

// checkFormat checks the rules of the Trace Event Format: required fields by phase, flows
// that begin once and end once, and flow ends inside a call of their thread.
func checkFormat(t *testing.T, text []byte) {
	t.Helper()
	var file struct {
		TraceEvents []map[string]any `json:"traceEvents"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	type thread struct{ pid, tid float64 }
	calls := map[thread][][2]float64{}
	need := map[string][]string{"X": {"ts", "dur", "name", "cat"}, "s": {"ts", "id", "name", "cat"}, "f": {"ts", "id", "name", "cat", "bp"}, "M": {"name", "args"}, "i": {"ts", "s", "name"}}
	for i, e := range file.TraceEvents {
		ph, _ := e["ph"].(string)
		if need[ph] == nil {
			t.Fatalf("element %d has the phase %q", i, ph)
		}
		for _, field := range append([]string{"pid", "tid"}, need[ph]...) {
			if _, ok := e[field]; !ok {
				t.Errorf("element %d of phase %s has no %s", i, ph, field)
			}
		}
		if ph == "X" {
			at := thread{e["pid"].(float64), e["tid"].(float64)}
			calls[at] = append(calls[at], [2]float64{e["ts"].(float64), e["ts"].(float64) + e["dur"].(float64)})
		}
	}
	for _, e := range file.TraceEvents {
		if e["ph"] != "s" && e["ph"] != "f" {
			continue
		}
		at, ts := thread{e["pid"].(float64), e["tid"].(float64)}, e["ts"].(float64)
		if !slices.ContainsFunc(calls[at], func(c [2]float64) bool { return ts >= c[0] && ts <= c[1] }) {
			t.Errorf("the flow %v (%v) at %v is in no call of its thread", e["id"], e["ph"], ts)
		}
	}
}

// TestNumberWildcards: receives that were posted in another order than they completed, with
// wildcards, get the numbers of the messages that they received.
func TestNumberWildcards(t *testing.T) {
	sends := []Event{send(0, 1, 1, 5), send(2, 3, 1, 6), send(4, 5, 1, 5)}
	receives := []Event{recv(10, 11, 0, 5), recv(12, 13, 0, 5), recv(14, 15, 0, 6)}
	m := job(t, sends, receives).Match()
	want := []Message{{At{0, 0}, At{1, 0}}, {At{0, 2}, At{1, 1}}, {At{0, 1}, At{1, 2}}}
	if !reflect.DeepEqual(m.Messages, want) || m.Unmatched != 0 {
		t.Errorf("matched %v, %d unmatched; want %v and none", m.Messages, m.Unmatched, want)
	}
}

func TestUnmatched(t *testing.T) {
	m := job(t, []Event{send(0, 1, 1, 5), send(1, 2, 1, 5)}, []Event{recv(0, 3, 0, 5)}).Match()
	if len(m.Messages) != 1 || m.Unmatched != 1 || m.Sends != 2 || m.Receives != 1 {
		t.Errorf("%d messages of %d sends and %d receives, %d unmatched; want 1 of 2 and 1, 1 unmatched", len(m.Messages), m.Sends, m.Receives, m.Unmatched)
	}
}

func TestAnalyze(t *testing.T) {
	wait := Event{Name: "Wait", Kind: "wait", Begin: 20, End: 60, Peer: None, Tag: -1, From: None, By: -1}
	irecv := recv(5, 6, 0, 1)
	irecv.Name, irecv.Starts, irecv.By = "Irecv", true, 1
	tests := []struct {
		name  string
		ranks [][]Event
		want  []Wait
		path  []PathStep
	}{
		{"late sender", [][]Event{{send(100, 110, 1, 0)}, {recv(40, 120, 0, 0)}},
			[]Wait{{LateSender, At{1, 0}, At{0, 0}, 40, 100}}, []PathStep{{0, 40, 100}, {1, 100, 120}}},
		{"buffered", [][]Event{{send(0, 10, 1, 0)}, {recv(40, 50, 0, 0)}}, nil, []PathStep{{1, 0, 50}}},
		{"late receiver", [][]Event{{send(0, 90, 1, 0)}, {recv(80, 91, 0, 0)}},
			[]Wait{{LateReceiver, At{0, 0}, At{1, 0}, 0, 80}}, []PathStep{{1, 0, 91}}},
		{"wait for a request", [][]Event{{send(50, 55, 1, 1)}, {irecv, wait}},
			[]Wait{{LateSender, At{1, 1}, At{0, 0}, 20, 50}}, []PathStep{{0, 5, 50}, {1, 50, 60}}},
		{"barrier", [][]Event{{coll("Barrier", 0, 31, None)}, {coll("Barrier", 30, 31, None)}, {coll("Barrier", 10, 32, None)}},
			[]Wait{{AtCollective, At{0, 0}, At{1, 0}, 0, 30}, {AtCollective, At{2, 0}, At{1, 0}, 10, 30}}, []PathStep{{1, 0, 30}, {2, 30, 32}}},
		{"late root", [][]Event{{coll("Bcast", 0, 31, 1)}, {coll("Bcast", 20, 21, 1)}, {coll("Bcast", 40, 41, 1)}},
			[]Wait{{AtCollective, At{0, 0}, At{1, 0}, 0, 20}}, []PathStep{{2, 0, 41}}},
		{"root of a reduction", [][]Event{{coll("Reduce", 0, 31, 0)}, {coll("Reduce", 20, 21, 0)}},
			[]Wait{{AtCollective, At{0, 0}, At{1, 0}, 0, 20}}, []PathStep{{1, 0, 20}, {0, 20, 31}}},
		{"empty", [][]Event{{}, {}}, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tr := job(t, test.ranks...)
			a := tr.Analyze()
			if !reflect.DeepEqual(a.Waits, test.want) {
				t.Errorf("waits %+v, want %+v", a.Waits, test.want)
			}
			if !reflect.DeepEqual(a.Path, test.path) {
				t.Errorf("critical path %+v, want %+v", a.Path, test.path)
			}
			if text := a.Text(tr); !strings.Contains(text, "messages matched: 100") {
				t.Errorf("the summary does not report that all messages match:\n%s", text)
			}
			var b strings.Builder
			if err := a.WriteSVG(&b, tr); err != nil {
				t.Fatal(err)
			}
			for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("the picture is not XML: %v", err)
				}
			}
		})
	}
}

func TestLanes(t *testing.T) {
	got := Lanes([]Event{{Begin: 0, End: 10}, {Begin: 2, End: 4}, {Begin: 3, End: 5}, {Begin: 10, End: 11}, {Begin: 10, End: 12}})
	if want := []int{0, 1, 2, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("overlapping calls are in the rows %v, want %v", got, want)
	}
}

func FuzzRead(f *testing.F) {
	e := []Event{send(0, 1, 0, 5), recv(2, 3, 0, 5)}
	Number(e)
	f.Add(append(Append([]byte(Header), &Rank{Events: e}), Footer...))
	f.Add([]byte(Header + `{"ph":"X","ts":1.5,"dur":2,"args":{"by":-3}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if tr, err := Read(text); err == nil {
			a := tr.Analyze()
			_ = a.Text(tr)
			if err := a.WriteSVG(io.Discard, tr); err != nil {
				t.Error(err)
			}
		}
	})
}
