package sched

import (
	"slices"
	"strings"
	"testing"
)

// arrivalPort is a Port whose sends complete on request, and an ArrivalTracker.
type arrivalPort struct {
	here   map[int32]bool
	short  bool // sends complete at once
	posted []int32
}

func (c *arrivalPort) Post(_ *Run, id int, op *Op, _ []byte) (bool, error) {
	if op.Kind == Send {
		c.posted = append(c.posted, op.Peer)
	}
	return op.Kind == Send && c.short, nil
}

func (c *arrivalPort) Reduce(*Run, []byte, []byte) {}

func (c *arrivalPort) Arrived(_ *Run, _ int, op *Op) bool { return c.here[op.Peer] }

// unorderedTo returns a graph in which rank 0 sends a byte to each of n others.
func unorderedTo(t *testing.T, n, ports int) *Graph {
	t.Helper()
	var b Builder
	b.Reset(0, n+1)
	b.Ports(ports)
	for peer := 1; peer <= n; peer++ {
		b.SendUnordered(peer, Span{In, 0, 1})
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (c *arrivalPort) take() (posted []int32) {
	posted, c.posted = slices.Clone(c.posted), c.posted[:0]
	return posted
}

// TestUnorderedSendsFollowArrival checks that arrived peers get the ports, and that a
// send to a peer that has not arrived does not take a port from them.
func TestUnorderedSendsFollowArrival(t *testing.T) {
	c := &arrivalPort{here: map[int32]bool{3: true}}
	r := &Run{Graph: unorderedTo(t, 6, 2), Port: c, Arrivals: c, Mem: [Bufs][]byte{make([]byte, 1), nil, nil}}
	step := func(what string, want ...int32) {
		t.Helper()
		if got := c.take(); !slices.Equal(got, want) {
			t.Fatalf("%s: sends to %v were posted, want %v", what, got, want)
		}
	}
	r.Start()
	step("rank 3 has arrived, one port is left for the first of the others", 3, 1)
	c.here[5], c.here[6] = true, true
	r.Serve()
	step("ranks 5 and 6 have arrived, rank 1 has not: one of them gets its port", 5)
	r.HandleEnd(2, nil)
	step("the send to rank 3 has completed: rank 6 goes before rank 2", 6)
	r.HandleEnd(4, nil)
	r.HandleEnd(5, nil)
	step("no other rank has arrived: a port for the next in order", 2)
	r.Serve()
	step("no new arrival")
	c.here[1], c.here[2] = true, true
	r.HandleEnd(0, nil)
	step("the last one", 4)
	r.HandleEnd(1, nil)
	r.HandleEnd(3, nil)
	if !r.Done() || r.Overtaken() != 3 {
		t.Errorf("done %v, %d sends overtook others; want true, 3", r.Done(), r.Overtaken())
	}
}

// TestUnorderedSendsKeepOrder checks short sends to peers that have not arrived, and to
// peers that all have.
func TestUnorderedSendsKeepOrder(t *testing.T) {
	for _, c := range []*arrivalPort{{short: true}, {short: true, here: map[int32]bool{1: true, 2: true, 3: true, 4: true}}} {
		r := &Run{Graph: unorderedTo(t, 4, 1), Port: c, Arrivals: c, Mem: [Bufs][]byte{make([]byte, 1), nil, nil}}
		r.Start()
		if got := c.take(); !slices.Equal(got, []int32{1, 2, 3, 4}) || !r.Done() || r.Overtaken() != 0 {
			t.Errorf("posted %v, done %v, %d overtook", got, r.Done(), r.Overtaken())
		}
	}
}

func TestUnorderedSendsAllocateNothing(t *testing.T) {
	c := &arrivalPort{here: map[int32]bool{3: true}, short: true, posted: make([]int32, 0, 64)}
	r := &Run{Graph: unorderedTo(t, 16, 2), Port: c, Arrivals: c, Mem: [Bufs][]byte{make([]byte, 1), nil, nil}}
	r.Start()
	if n := testing.AllocsPerRun(100, func() { c.posted = c.posted[:0]; r.Start() }); n != 0 {
		t.Errorf("a run allocates %v times", n)
	}
}

// TestUnorderedNeedsEarlyReceive checks that Validate rejects a receive that waits for
// another message: its send could hold a port that others need.
func TestUnorderedNeedsEarlyReceive(t *testing.T) {
	const text = `
rank 0 of 3, scratch 0, ports 1
0 step 0: send unordered in[0:1] to 1
rank 1 of 3, scratch 0
0 step 0: recv out[1:2] from 2
1 step 0: recv out[0:1] from 0%s
rank 2 of 3, scratch 0
0 step 0: send in[0:1] to 1
`
	task := &Task{Ranks: []Memory{
		{In: 1, Start: []Piece{{Span: Span{In, 0, 1}, From: 0, To: 1}}},
		{Out: 2, End: []Piece{{Span: Span{Out, 0, 1}, From: 0, To: 1}, {Span: Span{Out, 1, 1}, From: 2, To: 3}}},
		{In: 1, Start: []Piece{{Span: Span{In, 0, 1}, From: 2, To: 3}}}}}
	for _, c := range []struct{ after, want string }{{"", ""}, {" after 0", "unordered: rank 0, operation 0"}} {
		graphs, err := parseText(strings.Replace(text, "%s", c.after, 1))
		if err != nil {
			t.Fatal(err)
		}
		err = Validate(graphs, task)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("with %q: %v, want %q", c.after, err, c.want)
		}
	}
}

// TestStreams checks that messages of different streams may overtake each other and
// that those of one stream may not.
func TestStreams(t *testing.T) {
	const text = `rank 0 of 2, scratch 0
0 step 0: send in[0:1] to 1
1 step 0: send in[1:3] to 1 stream 7
rank 1 of 2, scratch 0
0 step 0: recv out[1:3] from 0 stream 7
1 step 0: recv out[0:1] from 0 after 0
`
	graphs, err := parseText(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := graphs[0].String() + graphs[1].String(); got != text {
		t.Errorf("the text comes back as\n%s", got)
	}
	task := &Task{Ranks: []Memory{
		{In: 3, Start: []Piece{{Span: Span{In, 0, 3}, From: 0, To: 1}}},
		{Out: 3, End: []Piece{{Span: Span{Out, 0, 3}, From: 0, To: 1}}}}}
	if err := Validate(graphs, task); err != nil {
		t.Error(err)
	}
	if _, err := Total(graphs); err != nil {
		t.Error(err)
	}
	graphs, err = parseText(strings.ReplaceAll(text, " stream 7", ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(graphs, task); err == nil || !strings.Contains(err.Error(), "pairing") {
		t.Errorf("one stream: %v, want a fault in pairing", err)
	}
}
