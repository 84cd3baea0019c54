package trace

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestReadPart(t *testing.T) {
	var events [2][]Event
	for i := range int64(100) {
		events[0] = append(events[0], send(i*10, i*10+3, 1, 5))
		events[1] = append(events[1], recv(i*10, i*10+5, 0, 5))
	}
	events[0][1].Packing = 7
	text := fileOf(ranksOf(events[0], events[1])...)
	whole, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, most := range []int{200, 1000} {
		if all, err := ReadPart(bytes.NewReader(text), most); err != nil || !reflect.DeepEqual(all, whole) {
			t.Errorf("at most %d calls of 200 must be all: %v, %v", most, all, err)
		}
	}
	part, err := ReadPart(bytes.NewReader(text), 60)
	if err != nil {
		t.Fatal(err)
	}
	for r, k := range part.Ranks {
		n := len(k.Events)
		if n < 15 || n > 30 || k.Dropped != 100-n || !reflect.DeepEqual(k.Events, whole.Ranks[r].Events[:n]) {
			t.Errorf("rank %d has %d calls, and %d dropped", r, n, k.Dropped)
		}
	}
	if m := part.Match(); len(m.Messages) < 15 || m.Messages[0] != (Message{At{0, 0}, At{1, 0}}) {
		t.Errorf("matched %+v", m)
	}
	if _, err := ReadPart(bytes.NewReader(text[:len(text)-3]), 60); err == nil || !strings.Contains(err.Error(), "not a complete trace") {
		t.Errorf("a trace without its end: %v", err)
	}
	if again, err := ReadPart(strings.NewReader(" "+string(text)), 60); err != nil || !reflect.DeepEqual(again, whole) {
		t.Errorf("a file of another layout is read as a whole: %v", err)
	}
}

func TestHostsDifferInNamesOrNodes(t *testing.T) {
	tr := &Trace{Ranks: []*Rank{{Host: "a"}, {Host: "b"}, {Host: "a", Node: 1}, {Host: "b"}}}
	if of, n := tr.Hosts(); n != 3 || !reflect.DeepEqual(of, []int{0, 1, 2, 1}) {
		t.Errorf("hosts %v, %d of them", of, n)
	}
}
