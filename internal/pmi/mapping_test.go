package pmi

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestMappingNode(t *testing.T) {
	for text, want := range map[string][]int{
		"(vector,(0,1,1))":                  {0, 0, 0, 0},
		"(vector,(0,1,4))":                  {0, 0, 0, 0, 0, 0},
		"(vector,(0,2,1))":                  {0, 1, 0, 1, 0},
		"(vector,(0,2,2))":                  {0, 0, 1, 1, 0, 0, 1, 1},
		"(vector,(0,1,2),(1,2,1))":          {0, 0, 1, 2, 0, 0, 1, 2},
		"(vector, (3,1,1), (0,1,0))":        {3, 3},
		"(vector,(0,3,8),(3,1,5),(0,0,99))": {0, 0, 0, 0, 0, 0, 0, 0, 1},
	} {
		m, err := parseMapping(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []int
		for r := range want {
			got = append(got, m.node(r))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s assigns ranks to nodes %v, want %v", text, got, want)
		}
	}
	m, _ := parseMapping("(vector,(0,2,1))")
	if before, all := m.local(3, 5); before != 1 || all != 2 {
		t.Errorf("rank 3 of 5 on two alternating nodes must be the second of two on its node; is %d of %d", before, all)
	}
	alone := eachAlone(4)
	if before, all := alone.local(2, 4); before != 0 || all != 1 {
		t.Errorf("without a mapping each rank is alone; got %d of %d", before, all)
	}
}

func TestParseMappingErrors(t *testing.T) {
	for _, text := range []string{"", "(vector)", "vector", "(vector,(0,1))", "(vector,(0,1,0))", "(vector,(0,-1,1))",
		"(vector,(0,1,1)", "(matrix,(0,1,1))", "(vector,(0,99999999999,1))", "(vector,(0,16777216,16777216))", "(vector,(0,1,1)(1,1,1))"} {
		if m, err := parseMapping(text); err == nil {
			t.Errorf("%q must be refused, was read as %+v", text, m)
		}
	}
}

func FuzzParseMapping(f *testing.F) {
	f.Add("(vector,(0,1,1))")
	f.Add("(vector,(0,2,3),(2,1,1))")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMapping(text)
		if err != nil {
			return
		}
		for _, r := range []int{0, 1, m.cycle - 1, m.cycle, 1 << 29} {
			if n := m.node(r); n < 0 {
				t.Fatalf("%q puts rank %d on node %d", text, r, n)
			}
		}
	})
}

// Any layout can be formatted and parsed back.
func TestFormatMapping(t *testing.T) {
	random := make([]int, 200)
	for i := range random {
		random[i] = i * i % 7
	}
	for _, c := range []struct {
		nodes []int
		want  string // "": only parse it back
	}{
		{[]int{0}, "(vector,(0,1,1))"},
		{[]int{0, 0, 0, 0}, "(vector,(0,1,4))"},
		{[]int{0, 0, 1, 1}, "(vector,(0,2,2))"},
		{[]int{0, 1, 0, 1}, "(vector,(0,2,1))"},
		{[]int{0, 1, 2, 3}, "(vector,(0,4,1))"},
		{[]int{0, 0, 0, 1}, "(vector,(0,1,3),(1,1,1))"},
		{[]int{0, 1, 1, 0}, "(vector,(0,1,1),(1,1,2),(0,1,1))"},
		{[]int{0, 0, 1, 0, 0, 1}, "(vector,(0,1,2),(1,1,1))"},
		{[]int{2, 2, 0, 1, 5}, ""},
		{random, ""},
	} {
		text := FormatMapping(c.nodes)
		if c.want != "" && text != c.want {
			t.Errorf("%v must be written %s, not %s", c.nodes, c.want, text)
		}
		m, err := parseMapping(text)
		if err != nil {
			t.Errorf("%v: %v", c.nodes, err)
			continue
		}
		for rank, node := range c.nodes {
			if got := m.node(rank); got != node {
				t.Errorf("%s: rank %d is on node %d, not %d", text, rank, got, node)
			}
		}
	}
}

// A text that does not fit a line is replaced by one rank per node.
func TestFormatMappingTooLong(t *testing.T) {
	nodes := make([]int, 20000)
	for i := range nodes {
		nodes[i] = int(uint32(i) * 2654435761 >> 20)
	}
	m, err := parseMapping(FormatMapping(nodes))
	if err != nil || m.node(3) == m.node(4) {
		t.Errorf("each rank must be alone on its node: %v", err)
	}
}

// The closed forms agree with counting, and take no time for each rank.
func TestMappingCounts(t *testing.T) {
	for _, text := range []string{
		"(vector,(0,1,1))", "(vector,(0,4,2))", "(vector,(0,3,1))", "(vector,(0,1,3),(1,1,1))", "(vector,(0,1,1),(1,1,2),(0,1,1))",
		"(vector,(2,2,3),(0,2,1),(3,1,2))", "(vector,(0,2,0),(0,1,2))",
	} {
		m, err := parseMapping(text)
		if err != nil {
			t.Fatal(err)
		}
		const size = 40
		onNode := map[int][]int{}
		for rank := range size {
			onNode[m.node(rank)] = append(onNode[m.node(rank)], rank)
		}
		for node, ranks := range onNode {
			for index, rank := range ranks {
				before, all := m.local(rank, size)
				if before != index || all != len(ranks) || m.at(node, index) != rank {
					t.Errorf("%s: rank %d is number %d of %d on node %d, and number %d there is %d; want %d of %d",
						text, rank, before, all, node, index, m.at(node, index), index, len(ranks))
				}
			}
		}
	}
	var text strings.Builder
	text.WriteString("(vector")
	for i := range 4000 {
		fmt.Fprintf(&text, ",(%d,1,%d)", i, 1+i%3)
	}
	m, err := parseMapping(text.String() + ")")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	const size = 1 << 24
	for rank := 0; rank < size; rank += size / 64 {
		before, all := m.local(rank, size)
		if m.at(m.node(rank), before) != rank || before >= all {
			t.Fatalf("rank %d: number %d of %d on its node", rank, before, all)
		}
	}
	if took := time.Since(began); took > 5*time.Second { // counting takes hours
		t.Errorf("64 ranks of %d took %v", size, took)
	}
}
