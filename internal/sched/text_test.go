package sched

import (
	"reflect"
	"strings"
	"testing"
)

// exampleText is a graph with every kind of operation, several dependencies and
// several messages to one peer.
const exampleText = `rank 1 of 3, scratch 64
0 step 0: copy in[0:8] to out[8:16]
1 step 1: send out[8:16] to 0 after 0
2 step 1: recv tmp[0:8] from 2
3 step 1: reduce tmp[0:8] into out[8:16] after 1 2
4 step 2: send out[8:12] to 0 after 3
5 step 2: copy tmp[0:0] to tmp[0:0] after 1 4
`

func TestTextRoundTrip(t *testing.T) {
	var b Builder
	b.Reset(1, 3)
	own := b.Copy(Span{Out, 8, 8}, Span{In, 0, 8})
	b.Step(1)
	sent := b.Send(0, Span{Out, 8, 8}, own)
	tmp := b.Tmp(8)
	got := b.Recv(2, tmp)
	sum := b.Reduce(Span{Out, 8, 8}, tmp, got, sent)
	b.Step(2)
	last := b.Send(0, Span{Out, 8, 4}, sum)
	b.Join(last, sent)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	if text := g.String(); text != exampleText {
		t.Errorf("the text of the graph is\n%s\nwant\n%s", text, exampleText)
	}
	read, err := parseText("# made by hand\n\n" + exampleText + "rank 0 of 1, scratch 0 # nothing to do\n")
	if err != nil {
		t.Fatalf("parseText of a graph with comments: %v", err)
	}
	if len(read) != 2 || !reflect.DeepEqual(read[0], g) {
		t.Errorf("parseText returned\n%+v\nwant\n%+v", read[0], g)
	}
}

func TestParseErrors(t *testing.T) {
	head := "rank 1 of 3, scratch 64\n"
	for _, c := range []struct{ text, want string }{
		{"0 step 0: send in[0:8] to 0", `line 1: "0" comes before the header of the graph`},
		{"rank 3 of 3, scratch 0", "line 1: rank 3 is outside of 3 ranks"},
		{"rank 0 of 3 scratch 0", `line 1: "3" is not a valid number of ranks`},
		{"rank 0 of 3, scratch 0 bytes", `line 1: unexpected "bytes" at the end`},
		{head + "\n1 step 0: send in[0:8] to 0", "line 3: operation 0 has the number 1"},
		{head + "0 step x: send in[0:8] to 0", `line 2: "x:" is not a valid step`},
		{head + "0 step 0: swap in[0:8] to 0", `line 2: unknown operation "swap"`},
		{head + "0 step 0: send in[0:8] from 0", `line 2: found "from", expected "to"`},
		{head + "0 step 0: send in[8:0] to 0", `line 2: "in[8:0]" is not a part of a buffer`},
		{head + "0 step 0: send mid[0:8] to 0", `unknown buffer "mid"`},
		{head + "0 step 0: send in[0:8] to 1", "line 2: operation 0: send with rank 1 of 3, by rank 1"},
		{head + "0 step 0: recv in[0:8] from 0", "line 2: operation 0: recv writes into the input"},
		{head + "0 step 0: copy in[0:8] to out[0:4]", "line 2: operation 0: copy of 8 bytes to 4"},
		{head + "0 step 0: send in[0:8] to 0 after 0", `line 2: "0" is not a valid operation before this one`},
		{head + "0 step 0: send in[0:8] to 0 after", "line 2: no operation follows after"},
		{head + "0 step 0: send in[0:8] to 0 before 1", `line 2: found "before"`},
	} {
		_, err := parseText(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("parseText(%q): error %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(exampleText)
	f.Add("rank 0 of 2, scratch 0\n0 step 0: recv out[0:1] from 1\nrank 1 of 2, scratch 0\n0 step 0: send in[0:1] to 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		graphs, err := parseText(text)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, g := range graphs {
			again.WriteString(g.String())
		}
		read, err := parseText(again.String())
		if err != nil {
			t.Fatalf("parseText of the output of String: %v\n%s", err, again.String())
		}
		if !reflect.DeepEqual(read, graphs) {
			t.Fatalf("the graphs of\n%s\ndiffer from those of\n%s", text, again.String())
		}
	})
}
