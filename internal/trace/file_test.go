package trace

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestCheckFindsFaults breaks the rules of the file one by one.
func TestCheckFindsFaults(t *testing.T) {
	good := string(fileOf(ranksOf([]Event{send(0, 1000, 1, 5), send(1000, 2000, 1, 5)}, []Event{recv(500, 1500, 0, 5), recv(1600, 2500, 0, 5)})...))
	if c, err := Check([]byte(good)); err != nil || c.Flows != 2 || c.Open != 0 || c.Backward != 0 || c.Slices != 4 {
		t.Fatalf("4 calls and 2 flows with both ends: %+v, %v", c, err)
	}
	id := fmt.Sprintf("%x", flowID(0, 1, 0, 5, 0))
	for _, test := range []struct{ name, old, new, want string }{
		{"incomplete", `]}`, ``, "invalid character"},
		{"unknown member", `"displayTimeUnit"`, `"x":1,"displayTimeUnit"`, `unknown field "x"`},
		{"no pid", `"pid":1,`, ``, "pid is missing"},
		{"idle task", `"tid":1000,`, `"tid":0,`, "tid is missing"},
		{"thread in two processes", `"tid":2000,`, `"tid":1000,`, "in the processes 1 and 2"},
		{"no duration", `,"dur":1.000`, ``, "dur is"},
		{"no category", `"cat":"send",`, ``, "no cat"},
		{"slices that overlap", `"ts":0.000,"dur":1.000`, `"ts":0.000,"dur":1.500`, "after the slice around it"},
		{"back in time", `"ts":1.000,"dur":1.000`, `"ts":-1.000,"dur":1.000`, "follows an element"},
		{"flow without a slice", `"ts":1.499,"id"`, `"ts":1.550,"id"`, "in no slice"},
		{"flow that Perfetto drops", id, "0-1-0-5-0", "hexadecimal"},
		{"flow that ends twice", fmt.Sprintf("%x", flowID(0, 1, 0, 5, 1)), id, "twice"},
		{"unknown phase", `"ph":"s"`, `"ph":"q"`, "not used"},
		{"metadata", `"process_name"`, `"process_nam"`, "metadata"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bad := strings.Replace(good, test.old, test.new, 1)
			if bad == good {
				t.Fatalf("the file has no %s", test.old)
			}
			if _, err := Check([]byte(bad)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v; want one about %q", err, test.want)
			}
		})
	}
	open := strings.Replace(good, id, "abc", 1)
	if c, err := Check([]byte(open)); err != nil || c.Open != 2 || c.Flows != 1 {
		t.Errorf("want two flows with one end and one with both: %+v, %v", c, err)
	}
}

// TestPhases writes and reads phases of all rows, with messages that overlap.
func TestPhases(t *testing.T) {
	phases := []Phase{
		{Row: RowProgress, Name: RowProgress, Begin: 10, End: 30, Peer: None, Tag: -1},
		{Row: RowAsleep, Name: RowAsleep, Begin: 40, End: 50, Peer: None, Tag: -1},
		{Row: RowNetwork, Name: "retransmissions", Begin: 60, End: 60, Peer: None, Tag: -1, Count: 3},
		{Row: RowProtocol, Name: "rndv_get send", Begin: 5, End: 45, Peer: 1, Tag: 7, Bytes: 1 << 20, Sends: true, Steps: []Step{{"RTS", 5}}},
		{Row: RowProtocol, Name: "rndv_put receive", Begin: 20, End: 60, Peer: 1, Tag: 8, Bytes: 1 << 10, Steps: []Step{{"RTR", 20}, {"transfer", 50}}},
	}
	r := ranksOf([]Event{send(0, 70, 0, 1), recv(80, 100, 0, 1)})[0]
	r.Phases, r.Host, r.Offset, r.Error = phases, "a \"host\"", -5, 7
	r.Cores, r.CPUs, r.CPUTime = 8, [][2]int{{0, 1}, {4, 4}}, 12
	text := fileOf(r)
	if c, err := Check(text); err != nil || c.Slices != 2+4+3 {
		t.Fatalf("%+v, %v", c, err)
	}
	tr, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := tr.Ranks[0]; !reflect.DeepEqual(got, r) {
		t.Errorf("the file changes the rank:\n%+v\nwas\n%+v", got, r)
	}
	want := "sent by rendezvous: 1 messages; RTRs without use: 0; retransmissions: 3\nasleep: 10.0 %, progress thread: 20.0 % of the ranks' time\n"
	if got := tr.Analyze().Report(tr).Text(); !strings.Contains(got, want) {
		t.Errorf("the summary should contain\n%s\nbut is\n%s", want, got)
	}
}

// TestProgram turns calls into what a simulator replays.
func TestProgram(t *testing.T) {
	irecv := recv(10, 12, 1, 3)
	irecv.Label, irecv.Peer, irecv.Starts, irecv.By = &Label{Name: "Irecv", Kind: irecv.Kind}, 1, true, 2
	wait := Event{Label: &Label{Name: "Wait", Kind: "wait"}, Begin: 40, End: 60, Peer: None, Tag: -1, From: None, By: -1}
	other := Event{Label: &Label{Name: "Probe", Kind: "probe"}, Begin: 70, End: 75, Peer: 1, Tag: 4, From: None, By: -1}
	r := &Rank{Comms: []Comm{{Name: "pair", Context: 9, Ranks: []int{4, 1}}}, Events: []Event{irecv, send(20, 25, 1, 3), wait, collectiveCall("Bcast", 60, 70, 4), other}}
	var got []string
	for _, o := range r.Program() {
		got = append(got, fmt.Sprintf("%d %s compute %d took %d, to %d tag %d, from %d tag %d of %d bytes, starts %v, completes %v, ranks %v",
			o.Kind, o.Name, o.Compute, o.Took, o.Peer, o.Tag, o.From, o.FromTag, o.FromBytes, o.Starts, o.Completes, o.Comm.Ranks))
	}
	want := []string{
		"1 Irecv compute 10 took 2, to 1 tag -1, from 1 tag 3 of 8 bytes, starts true, completes [], ranks [4 1]",
		"0 Send compute 8 took 5, to 1 tag 3, from -2 tag 0 of 0 bytes, starts false, completes [], ranks [4 1]",
		"3 Wait compute 15 took 20, to -2 tag -1, from -2 tag 0 of 0 bytes, starts false, completes [0], ranks [4 1]",
		"4 Bcast compute 0 took 10, to 4 tag -1, from -2 tag 0 of 0 bytes, starts false, completes [], ranks [4 1]",
		"5 Probe compute 0 took 5, to 1 tag 4, from -2 tag 0 of 0 bytes, starts false, completes [], ranks [4 1]",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the program is\n%s\nand should be\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSummary compares the summary of a job of three ranks with what can be computed by
// hand: rank 1 waits 60 of 100 µs for rank 0, rank 2 is last at a barrier, where the others
// wait 20 and 15 µs, and rank 0 sends to rank 2, which receives 10 µs late. Rank 2 waits
// for nobody and ends last, so it is the critical path.
func TestSummary(t *testing.T) {
	ranks := [][]Event{
		{send(60, 62, 1, 0), collectiveCall("Barrier", 65, 86, None), send(86, 98, 2, 1)},
		{recv(0, 64, 0, 0), collectiveCall("Barrier", 70, 86, None)},
		{collectiveCall("Barrier", 85, 87, None), recv(96, 100, 0, 1)},
	}
	for _, events := range ranks {
		for i := range events { // to microseconds
			events[i].Begin, events[i].End = events[i].Begin*1000, events[i].End*1000
		}
	}
	tr := job(t, ranks...)
	got := tr.Analyze().Report(tr).Text()
	for _, want := range []string{
		"trace: 3 ranks on 1 host(s), 7 calls, 2 messages\n",
		"recorded: 100µs from the end of Init to the end of the last call, 100µs of it from the first call\n",
		"  rank 1 for rank 0          1       60µs  20.0 %\n",
		"  rank 0 for rank 2          1       10µs  3.3 %\n",
		"  Barrier, rank 2  2       35µs  11.7 %\n",
		"Critical path: 1 steps\n",
		"  rank 2 between calls  1       94µs  94.0 %\n",
		"  rank 2 in Recv        1       4µs   4.0 %\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the summary should contain %q:\n%s", want, got)
		}
	}
	var picture strings.Builder
	a := tr.Analyze()
	if err := a.WriteSVG(&picture, tr, a.Span); err != nil {
		t.Fatal(err)
	}
	for color, want := range map[string]int{waitColor: 4, pathColor: 2, messageColor: 2} { // the arrow has the color of the path
		if got := strings.Count(picture.String(), color) - 1; got != want { // one in the legend
			t.Errorf("the picture has %d shapes in %s, want %d: waits, critical path, messages", got, color, want)
		}
	}
}
