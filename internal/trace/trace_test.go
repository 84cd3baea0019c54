package trace

import (
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func send(begin, end int64, to, tag int32) Event {
	return Event{Label: &Label{Name: "Send", Kind: kindSend}, Begin: begin, End: end, Peer: to, Tag: tag, Bytes: 8, Sends: true, From: None, By: -1}
}

func recv(begin, end int64, from, tag int32) Event {
	return Event{Label: &Label{Name: "Recv", Kind: kindRecv}, Begin: begin, End: end, Peer: AnyRank, Tag: -1, From: from, FromTag: tag, FromBytes: 8, By: -1}
}

func collectiveCall(name string, begin, end int64, root int32) Event {
	return Event{Label: &Label{Name: name, Kind: kindCollective}, Begin: begin, End: end, Peer: root, Tag: -1, From: None, By: -1}
}

// ranksOf returns ranks with these events on one communicator.
func ranksOf(ranks ...[]Event) (out []*Rank) {
	for r, events := range ranks {
		k := &Rank{Rank: r, Host: "h", Events: events, Comms: []Comm{{Name: "world"}}, Counters: map[string]uint64{"retransmissions": 2}}
		k.Number()
		out = append(out, k)
	}
	return out
}

// fileOf returns the file of these ranks.
func fileOf(ranks ...*Rank) []byte {
	text := []byte(Header)
	for _, r := range ranks {
		text = Append(text, r)
	}
	return append(text, Footer...)
}

// job returns a trace that went through the file.
func job(t *testing.T, ranks ...[]Event) *Trace {
	t.Helper()
	were := ranksOf(ranks...)
	text := fileOf(were...)
	if _, err := Check(text); err != nil {
		t.Fatal(err)
	}
	tr, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	for r, were := range were {
		if len(were.Events) == 0 {
			were.Events = nil
		}
		if got := tr.Ranks[r]; !reflect.DeepEqual(got, were) {
			t.Fatalf("the file changes rank %d:\n%+v\nwas\n%+v", r, got, were)
		}
	}
	return tr
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
	wait := Event{Label: &Label{Name: "Wait", Kind: "wait"}, Begin: 20, End: 60, Peer: None, Tag: -1, From: None, By: -1}
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
		{"barrier", [][]Event{{collectiveCall("Barrier", 0, 31, None)}, {collectiveCall("Barrier", 30, 31, None)}, {collectiveCall("Barrier", 10, 32, None)}},
			[]Wait{{AtCollective, At{0, 0}, At{1, 0}, 0, 30}, {AtCollective, At{2, 0}, At{1, 0}, 10, 30}}, []PathStep{{1, 0, 30}, {2, 30, 32}}},
		{"late root", [][]Event{{collectiveCall("Bcast", 0, 31, 1)}, {collectiveCall("Bcast", 20, 21, 1)}, {collectiveCall("Bcast", 40, 41, 1)}},
			[]Wait{{AtCollective, At{0, 0}, At{1, 0}, 0, 20}}, []PathStep{{2, 0, 41}}},
		{"root of a reduction", [][]Event{{collectiveCall("Reduce", 0, 31, 0)}, {collectiveCall("Reduce", 20, 21, 0)}},
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
			if text := a.Report(tr).Text(); !strings.Contains(text, "messages matched: 100") {
				t.Errorf("the summary does not report that all messages match:\n%s", text)
			}
			var b strings.Builder
			if err := a.WriteSVG(&b, tr, a.Span); err != nil {
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
	spans := [][2]int64{{0, 10}, {2, 4}, {3, 5}, {10, 11}, {10, 12}}
	got := lanes(len(spans), func(i int) (int64, int64) { return spans[i][0], spans[i][1] })
	if want := []int{0, 1, 2, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("overlapping calls are in the rows %v, want %v", got, want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(fileOf(ranksOf([]Event{send(0, 1, 0, 5), recv(2, 3, 0, 5)})...))
	f.Add([]byte(Header + `{"ph":"X","pid":1,"ts":1.5,"dur":2,"args":{"by":-3}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = Check(text)
		if tr, err := Read(text); err == nil {
			for _, r := range tr.Ranks {
				_ = r.Program()
			}
			a := tr.Analyze()
			_ = a.Report(tr).Text()
			if err := a.WriteSVG(io.Discard, tr, a.Span); err != nil {
				t.Error(err)
			}
		}
	})
}
