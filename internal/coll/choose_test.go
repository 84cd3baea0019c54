package coll

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// ethernet has costs that are easy to compute with: 10 µs a message, 1 ns a byte.
var ethernet = Model{Startup: 10e-6, PerByte: 1e-9, Reduce: 0.2e-9, Copy: 0.1e-9, Ports: 1}

func TestChooseByCost(t *testing.T) {
	twoPorts := ethernet
	twoPorts.Ports = 2
	block := func(n int) Blocks { return Blocks{Each: n} }
	for _, c := range []struct {
		name      string
		shape     Shape
		model     *Model
		algorithm string
		params    []int
		cost      float64
	}{
		// Recursive doubling of 8 bytes among 8: 3 messages of 8, 16, 32 bytes.
		{"a short allgather takes the fewest steps", Shape{Kind: Allgather, Size: 8, Recv: block(8)}, &ethernet,
			"recursive-doubling", []int{}, 30e-6 + 56e-9 + 0.8e-9},
		// With 11 ranks that would need correction; Bruck has 4 rounds: 1, 2, 4, 3 blocks.
		{"and Bruck where the ranks are not a power of two", Shape{Kind: Allgather, Size: 11, Recv: block(8)}, &ethernet,
			"bruck", []int{1}, 40e-6 + 80e-9 + 0.1e-9*96},
		// T2 equation 3.4: 2 steps of 2 ports, (9-1)/2 blocks a port.
		{"two ports go to the base three", Shape{Kind: Allgather, Size: 9, Recv: block(8)}, &twoPorts,
			"standard-exchange", []int{2}, 20e-6 + 32e-9 + 0.8e-9},
		// T2 equation 3.3: (9-1)/2 steps.
		{"a long alltoall is direct", Shape{Kind: Alltoall, Size: 9, Send: block(1 << 20), Recv: block(1 << 20)}, &twoPorts,
			"direct", []int{4}, 4*(10e-6+1e-9*(1<<20)) + 0.1e-9*(1<<20)},
		// Blocks with bit 0, 1, 2, 3 of their distance: 5, 5, 4, 3. All are packed, the
		// 7 that are not of the last round are unpacked, and the own one is copied.
		{"a short alltoall combines blocks", Shape{Kind: Alltoall, Size: 11, Send: block(8), Recv: block(8)}, &ethernet,
			"bruck", []int{1}, 40e-6 + 17*8e-9 + 0.1e-9*8*(1+17+7)},
		{"two ranks exchange one message", Shape{Kind: Alltoall, Size: 2, Send: block(8), Recv: block(8)}, &ethernet,
			"direct", []int{4}, 10e-6 + 8e-9 + 0.8e-9},
		{"neighbors", Shape{Kind: Neighbors, Size: 4, Send: block(8), Recv: block(8)}, &ethernet,
			"direct", []int{8}, 20e-6},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Choose(&c.shape, c.model, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Algorithm.Name != c.algorithm || !reflect.DeepEqual(got.Params, c.params) {
				t.Errorf("chose %s %v, want %s %v; ranking %v", got.Algorithm.Name, got.Params, c.algorithm, c.params, brief(got.Ranking))
			}
			if math.Abs(got.Cost-c.cost) > 1e-9*c.cost {
				t.Errorf("it costs %.6g, want %.6g", got.Cost, c.cost)
			}
		})
	}
}

func brief(ranking []Ranked) (list []any) {
	for _, r := range ranking {
		list = append(list, r.Algorithm.Name, r.Params, r.Cost)
	}
	return list
}

// TestChooseAlike checks that values that differ between ranks do not affect the choice.
func TestChooseAlike(t *testing.T) {
	lens := func(n ...int) Blocks { return Blocks{Lens: n, Offs: []int{0, 0, 0}, Irregular: true} }
	for _, c := range []struct {
		name string
		a, b Shape
	}{
		{"gatherv, at the root and elsewhere",
			Shape{Kind: Gather, Size: 3, Rank: 0, Recv: lens(1, 1<<20, 7), InPlace: true},
			Shape{Kind: Gather, Size: 3, Rank: 1, Recv: Blocks{Each: 1 << 20, Irregular: true}}},
		{"scatterv, at the root and elsewhere",
			Shape{Kind: Scatter, Size: 3, Rank: 0, Send: lens(1, 1<<20, 7)},
			Shape{Kind: Scatter, Size: 3, Rank: 2, Send: Blocks{Each: 7, Irregular: true}}},
		{"alltoallv",
			Shape{Kind: Alltoall, Size: 3, Rank: 0, Send: lens(0, 0, 0), Recv: lens(0, 0, 1)},
			Shape{Kind: Alltoall, Size: 3, Rank: 2, Send: lens(1, 1<<20, 3), Recv: lens(0, 1<<22, 3)}},
		{"neighbors",
			Shape{Kind: Neighbors, Size: 3, Rank: 0},
			Shape{Kind: Neighbors, Size: 3, Rank: 2, Sources: []int{1, 0, 2}, Dests: []int{1, 0, 2}, Send: lens(1, 1<<20, 3), Recv: lens(0, 1<<22, 3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := &Tuning{}
			for _, a := range AlgorithmsOf(c.a.Kind) {
				table.Rules = append(table.Rules, Rule{Kind: a.Kind, Bytes: Range{Min: 5}, Algorithm: a, Params: a.Default()})
			}
			for _, table := range []*Tuning{nil, table} {
				x, err := Choose(&c.a, &ethernet, table)
				if err != nil {
					t.Fatal(err)
				}
				y, err := Choose(&c.b, &ethernet, table)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(brief(x.Ranking), brief(y.Ranking)) || x.Algorithm != y.Algorithm {
					t.Errorf("rank %d: %v, rank %d: %v", c.a.Rank, brief(x.Ranking), c.b.Rank, brief(y.Ranking))
				}
			}
		})
	}
	for _, a := range Algorithms() {
		if a.Kind != Neighbors && a.Needs.NotInPlace {
			t.Errorf("%s by %s excludes calls in place, but a rank does not know whether others are in place", a.Kind, a.Name)
		}
		s := Shape{Kind: a.Kind, Size: 6, Elem: 8, Bytes: 800, Commutes: true, Send: Blocks{Each: 800}, Recv: Blocks{Each: 800}, Nodes: put(&a, 6)}
		other := s
		other.Rank, other.InPlace = 5, true
		a.EachParams(func(params []int) {
			if x, y := a.Cost(&s, &ethernet, params), a.Cost(&other, &ethernet, params); x != y {
				t.Errorf("%s by %s %v costs rank 0 %g, and rank 5 in place %g", a.Kind, a.Name, params, x, y)
			}
		})
	}
}

func TestChooseByTable(t *testing.T) {
	table, err := ParseTuning([]byte(`{
		"about": "an example",
		"rules": [
			{"kind": "allgather", "ranks": [2, 16], "bytes": [0, 100], "algorithm": "gather-bcast", "params": {"ports": 7}},
			{"kind": "allgather", "nodes": [2], "rails": [2, 2], "algorithm": "ring"},
			{"kind": "allgather", "nodes": [2], "algorithm": "direct"},
			{"kind": "allgather", "bytes": [5000], "algorithm": "neighbor-exchange"},
			{"kind": "alltoall", "bytes": [1, 64], "algorithm": "bruck", "params": {"ports": 2}},
			{"kind": "alltoall", "algorithm": "pairwise"}
		]}`))
	if err != nil {
		t.Fatal(err)
	}
	each := func(kind Kind, ranks, bytes int) Shape {
		return Shape{Kind: kind, Size: ranks, Send: Blocks{Each: bytes}, Recv: Blocks{Each: bytes}}
	}
	twoNodes := each(Allgather, 16, 101)
	twoNodes.Nodes = Consecutive(1, 8, 8)
	twoRails, threeRails := twoNodes, twoNodes
	twoRails.Nodes, threeRails.Nodes = Consecutive(2, 8, 8), Consecutive(3, 8, 8)
	vForm := each(Alltoall, 4, 64)
	vForm.Send.Irregular, vForm.Recv.Irregular = true, true
	for _, c := range []struct {
		name      string
		shape     Shape
		algorithm string
		params    []int
		why       string
	}{
		{"inside all ranges", each(Allgather, 16, 100), "gather-bcast", []int{7}, "rule 1 of the tuning table, for allgather with 2 to 16 ranks, 0 to 100 bytes"},
		{"too many ranks", each(Allgather, 17, 100), "bruck", []int{1}, "lowest estimated cost"},
		{"by nodes", twoNodes, "direct", []int{4}, "rule 3 of the tuning table, for allgather with 2 or more nodes"},
		{"by rails", twoRails, "ring", []int{1}, "rule 2 of the tuning table, for allgather with 2 or more nodes, 2 rails"},
		{"too many rails", threeRails, "direct", []int{4}, "rule 3 of the tuning table, for allgather with 2 or more nodes"},
		{"no upper end", each(Allgather, 4, 1<<30), "neighbor-exchange", []int{}, "rule 4 of the tuning table, for allgather with 5000 or more bytes"},
		{"not applicable", each(Allgather, 5, 1<<30), "direct", []int{4},
			"lowest estimated cost; rule 4 of the tuning table names neighbor-exchange, but the number of ranks is odd"},
		{"bytes not known to all", vForm, "pairwise", []int{}, "rule 6 of the tuning table, for every alltoall"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Choose(&c.shape, &ethernet, table)
			if err != nil {
				t.Fatal(err)
			}
			if got.Algorithm.Name != c.algorithm || !reflect.DeepEqual(got.Params, c.params) || got.Why != c.why {
				t.Errorf("chose %s %v for the reason %q, want %s %v for the reason %q; ranking %v",
					got.Algorithm.Name, got.Params, got.Why, c.algorithm, c.params, c.why, brief(got.Ranking))
			}
			if got.Cost < got.Ranking[0].Cost {
				t.Errorf("it costs %g, less than the lowest cost, %g", got.Cost, got.Ranking[0].Cost)
			}
		})
	}
}

func TestTuningRoundTrip(t *testing.T) {
	var table Tuning
	table.About = "quotes \" and\nlines"
	for i, a := range rows {
		ranges := []Range{{}, {Min: i + 1}, {Min: 1, Max: i + 1}}
		a.EachParams(func(params []int) {
			table.Rules = append(table.Rules, Rule{Kind: a.Kind, Algorithm: a, Params: append([]int{}, params...),
				Ranks: ranges[i%3], Bytes: ranges[(i+1)%3], Nodes: ranges[(i+2)%3], Rails: ranges[i/3%3]})
		})
	}
	text := table.Marshal()
	again, err := ParseTuning(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if !reflect.DeepEqual(&table, again) {
		t.Fatalf("the parsed table differs:\n%s", again.Marshal())
	}
	empty, err := ParseTuning((&Tuning{}).Marshal())
	if err != nil || empty.About != "" || len(empty.Rules) != 0 {
		t.Fatalf("an empty table is parsed as %+v, %v", empty, err)
	}
}

func TestTuningErrors(t *testing.T) {
	rule := func(s string) string { return "{\n\"rules\": [\n" + s + "\n]}" }
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "line 1: the table ends in the middle"},
		{"cut off", "{\n\"rules\": [\n{\"kind\":\"bcast\"", "line 3: the table ends in the middle"},
		{"no JSON", "{\n\"rules\": [\n{\"kind\" \"bcast\"}]}", "line 3: this is no JSON"},
		{"no JSON inside a value", rule(`{"kind": "allgather",` + "\n" + `"bytes": [1, x]}`), "line 4: this is no JSON"},
		{"a list", "[]", "the table: \"{\" must be here, not ["},
		{"more", "{}\n\n{}", "line 3: there is more after the end"},
		{"unknown key", rule(`{"kind": "allgather", "byte": [1]}`), `line 3: a rule has no "byte"; it can have kind, ranks, bytes, nodes, rails, algorithm, params`},
		{"twice", rule(`{"kind": "allgather", "kind": "bcast"}`), `line 3: a rule has "kind" twice`},
		{"no algorithm", rule(`{"kind": "allgather"}`), `line 3: a rule needs "kind" and "algorithm"`},
		{"unknown kind", rule("{\n\"kind\": \"allgathr\",\n\"algorithm\": \"ring\"}"), `line 4: unknown collective "allgathr"; want one of [barrier`},
		{"unknown algorithm", rule("{\"kind\": \"allgather\",\n\"algorithm\": \"rings\"}"), `line 4: allgather has no algorithm "rings"; it has direct, ring`},
		{"unknown parameter", rule(`{"kind": "allgather", "algorithm": "ring", "params": {"port": 2}}`), `line 3: allgather by ring has no parameter "port"; it has ways`},
		{"no such parameter", rule(`{"kind": "alltoall", "algorithm": "pairwise", "params": {"ports": 2}}`), `alltoall by pairwise has no parameter "ports"; it has none`},
		{"value of a parameter", rule(`{"kind": "allgather", "algorithm": "ring", "params": {"ways": 3}}`), `line 3: allgather by ring: ways cannot be 3; want one of [1 2]`},
		{"parameter no number", rule(`{"kind": "allgather", "algorithm": "ring", "params": {"ways": "2"}}`), `line 3: string is here; it must be names and whole numbers`},
		{"range upside down", rule(`{"kind": "allgather", "algorithm": "ring", "ranks": [4, 2]}`), `line 3: "ranks" is [4 2]; it must be [from] or [from, to]`},
		{"empty range", rule(`{"kind": "allgather", "algorithm": "ring", "ranks": []}`), `line 3: "ranks" is []; it must be`},
		{"range of text", rule(`{"kind": "allgather", "algorithm": "ring", "bytes": "1-2"}`), `line 3: string is here; it must be one or two whole numbers in brackets`},
		{"no rails", rule(`{"kind": "allgather", "algorithm": "ring", "rails": [0, 2]}`), `"rails" is [0 2]; it must be [from] or [from, to], with from at least 1`},
		{"no ranks", rule(`{"kind": "allgather", "algorithm": "ring", "ranks": [0]}`), `with from at least 1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseTuning([]byte(c.text))
			if err == nil || !strings.HasPrefix(err.Error(), "tuning table: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %q, want it to contain %q", err, c.want)
			}
		})
	}
}

func FuzzParseTuning(f *testing.F) {
	f.Add([]byte(`{"about": "x", "rules": [{"kind": "allgather", "ranks": [2, 16], "algorithm": "bruck", "params": {"ports": 3}}]}`))
	f.Add([]byte(`{"rules": [{"kind": "alltoall", "bytes": [1], "algorithm": "pairwise"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := ParseTuning(text)
		if err != nil {
			return
		}
		again, err := ParseTuning(table.Marshal())
		if err != nil || !reflect.DeepEqual(table.Rules, again.Rules) {
			t.Fatalf("%s comes back as %+v, %v", text, again, err)
		}
	})
}

func TestFindAndGraph(t *testing.T) {
	if _, err := Find(Alltoall, "ring"); err == nil || !strings.Contains(err.Error(), `alltoall has no algorithm "ring"; it has direct, pairwise, bruck, standard-exchange`) {
		t.Errorf("the error is %v", err)
	}
	seen := map[string]bool{}
	for _, a := range Algorithms() {
		name := a.Kind.String() + " " + a.Name
		found, err := Find(a.Kind, a.Name)
		if err != nil || found.Ref != a.Ref || seen[name] {
			t.Errorf("%s is found as %+v, %v, before %v", name, found, err, seen[name])
		}
		seen[name] = true
		if a.Ref == "" || a.About == "" || a.Cost == nil || a.Build == nil {
			t.Errorf("%s has no source, no description, no cost or no builder", name)
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	for _, kind := range []Kind{Allgather, Alltoall, Bcast} {
		b.Run(kind.String(), func(b *testing.B) {
			s := Shape{Kind: kind, Size: 33, Bytes: 64, Send: Blocks{Each: 64}, Recv: Blocks{Each: 64}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Choose(&s, &ethernet, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
