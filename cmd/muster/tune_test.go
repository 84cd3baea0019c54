//go:build !windows

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
)

// figuresOf parses lines such as "allgather ring:ways=1 8 5".
func figuresOf(t *testing.T, lines ...string) []tuneFigure {
	t.Helper()
	table := map[string]candidate{}
	for _, k := range tunable {
		for _, a := range coll.AlgorithmsOf(k) {
			a.EachParams(func(params []int) {
				c := candidate{a, append([]int{}, params...)}
				table[k.String()+" "+c.String()] = c
			})
		}
	}
	var figures []tuneFigure
	for _, line := range lines {
		words := strings.Fields(line)
		c, ok := table[words[0]+" "+words[1]]
		if !ok {
			t.Fatalf("there is no %s by %s", words[0], words[1])
		}
		figures = append(figures, tuneFigure{c, atoi(t, words[2]), float64(atoi(t, words[3]))})
	}
	return figures
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := parseSize(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTuneRules(t *testing.T) {
	for _, c := range []struct {
		name    string
		figures []string
		want    string
	}{
		{"one size: the rule is for all", []string{"barrier dissemination 0 30", "barrier tree:radix=2 0 20"},
			`{"kind": "barrier", "ranks": [4, 4], "nodes": [1, 1], "algorithm": "tree", "params": {"radix": 2}}`},
		{"the best of several rounds counts", []string{"bcast binomial 8 50", "bcast chain:segment=8192 8 40", "bcast binomial 8 30"},
			`{"kind": "bcast", "ranks": [4, 4], "nodes": [1, 1], "algorithm": "binomial"}`},
		{"a rule extends to the geometric mean of two sizes", []string{
			"allgather bruck:ports=1 64 10", "allgather ring:ways=1 64 30", "allgather bruck:ports=1 1K 50", "allgather ring:ways=1 1K 30", "allgather bruck:ports=1 4K 90", "allgather ring:ways=1 4K 60"},
			`{"kind": "allgather", "ranks": [4, 4], "bytes": [0, 256], "nodes": [1, 1], "algorithm": "bruck", "params": {"ports": 1}},` +
				`{"kind": "allgather", "ranks": [4, 4], "bytes": [257], "nodes": [1, 1], "algorithm": "ring", "params": {"ways": 1}}`},
		{"of equals the first is taken", []string{"barrier dissemination 0 101", "barrier tree:radix=2 0 100"},
			`{"kind": "barrier", "ranks": [4, 4], "nodes": [1, 1], "algorithm": "dissemination"}`},
		{"a difference within the noise does not change the algorithm", []string{
			"allreduce ring 8 100", "allreduce recursive-doubling 8 105", "allreduce ring 64 102", "allreduce recursive-doubling 64 100"},
			`{"kind": "allreduce", "ranks": [4, 4], "nodes": [1, 1], "algorithm": "ring"}`},
	} {
		rules := tuneRules(figuresOf(t, c.figures...), oneHost(4))
		text := string((&coll.Tuning{Rules: rules}).Marshal())
		got := strings.ReplaceAll(strings.TrimSpace(text[strings.Index(text, "[\n")+2:strings.LastIndex(text, "]")]), "\n    ", "")
		if got != c.want {
			t.Errorf("%s: the rules are\n%s\nnot\n%s", c.name, got, c.want)
		}
	}
}

func TestMergeTuningKeepsOtherRanks(t *testing.T) {
	four := tuneRules(figuresOf(t, "barrier dissemination 0 30", "allreduce ring 8 10"), oneHost(4))
	eight := tuneRules(figuresOf(t, "barrier tree:radix=2 0 30"), oneHost(8))
	again := tuneRules(figuresOf(t, "barrier tree:radix=4 0 30"), oneHost(4))
	table := mergeTuning(mergeTuning(&coll.Tuning{Rules: four}, eight, oneHost(8)), again, oneHost(4))
	want := []coll.Rule{again[0], eight[0], four[1]}
	if !reflect.DeepEqual(table.Rules, want) {
		t.Errorf("the rules are %+v; the new one comes first, those for 8 ranks and for allreduce stay: %+v", table.Rules, want)
	}
}

// Rules for several hosts name nodes and rails, and replace those of the same shape only.
func TestTuneRulesOfHosts(t *testing.T) {
	on := func(ranks, nodes, rails int) jobShape { return jobShape{layout{ranks, nodes}, rails} }
	two := tuneRules(figuresOf(t, "barrier dissemination 0 30"), on(16, 4, 2))
	text := string((&coll.Tuning{Rules: two}).Marshal())
	if want := `"ranks": [16, 16], "nodes": [4, 4], "rails": [2, 2], "algorithm": "dissemination"`; !strings.Contains(text, want) {
		t.Errorf("the rules are %s, want %s", text, want)
	}
	table := &coll.Tuning{Rules: two}
	for _, s := range []jobShape{oneHost(16), on(16, 2, 2), on(16, 4, 1), on(14, 4, 2)} {
		table = mergeTuning(table, tuneRules(figuresOf(t, "barrier tree:radix=2 0 30"), s), s)
	}
	if len(table.Rules) != 5 || !reflect.DeepEqual(table.Rules[4], two[0]) {
		t.Errorf("the table is\n%s\nwith five shapes, the first of which comes last", table.Marshal())
	}
	again := tuneRules(figuresOf(t, "barrier tree:radix=4 0 30"), on(16, 4, 2))
	if table = mergeTuning(table, again, on(16, 4, 2)); len(table.Rules) != 5 || !reflect.DeepEqual(table.Rules[0], again[0]) {
		t.Errorf("the table is\n%s\nwhere the rule of this shape is replaced", table.Marshal())
	}
}

// On one host every algorithm is a candidate, with its parameters once, except those that need
// several nodes.
func TestCandidatesAreAllAlgorithms(t *testing.T) {
	for _, k := range tunable {
		seen, algorithms := map[string]bool{}, map[string]bool{}
		for _, c := range candidatesOf(k, oneNode(6), false) {
			if seen[c.String()] {
				t.Errorf("%s by %s is a candidate twice", k, c)
			}
			seen[c.String()], algorithms[c.algorithm.Name] = true, true
		}
		for _, a := range coll.AlgorithmsOf(k) {
			if algorithms[a.Name] == a.Needs.Nodes {
				t.Errorf("%s by %s among 6 ranks of a host is a candidate: %v, though several nodes are needed: %v", k, a.Name, algorithms[a.Name], a.Needs.Nodes)
			}
		}
	}
}

func TestVariantServes(t *testing.T) {
	for _, c := range []struct {
		bench, algorithm   string
		ranks, nodes, size int
		want               bool
	}{
		{"allreduce", "ring", 4, 1, 8, true},
		{"allreduce", "segment", 4, 1, 8, true},
		{"iallreduce", "segment", 4, 1, 8, false},
		{"reduce-scatter", "segment", 4, 1, 8, false}, // it is the form with counts
		{"allgatherv", "segment", 4, 1, 8, false},
		{"allgather", "neighbor-exchange", 4, 1, 8, true},
		{"allgather", "neighbor-exchange", 5, 1, 8, false},
		{"barrier", "dissemination", 5, 1, 0, true},
		{"allgather", "node-bruck", 4, 1, 8, false}, // it needs several nodes
		{"allgather", "node-bruck", 4, 2, 8, true},
		{"allgatherv", "node-bruck", 5, 3, 8, true},
		{"alltoall", "node-carriers", 4, 2, 8, true},
		{"alltoallv", "node-carriers", 4, 2, 8, false}, // it needs blocks of one length
		{"alltoallv", "node-columns", 4, 2, 8, true},   // it exchanges the lengths first
		{"ialltoallv", "node-columns", 4, 2, 8, false}, // which a non-blocking call may not
		{"alltoallv", "node-columns", 4, 1, 8, false},
		{"allreduce", "segment", 4, 2, 8, false}, // there is none for several nodes
	} {
		b, err := bench.Find(c.bench)
		if err != nil {
			t.Fatal(err)
		}
		if ok, why := variantServes(b, c.algorithm, layout{c.ranks, c.nodes}, c.size); ok != c.want || ok == (why != "") {
			t.Errorf("%s by %s among %d ranks on %d nodes, %d bytes: %v, %q; it should be %v, with a reason if not", c.bench, c.algorithm, c.ranks, c.nodes, c.size, ok, why, c.want)
		}
	}
	// Needs.Regular applies to the variants with counts, Needs.Nodes to all.
	for _, a := range coll.Algorithms() {
		for _, name := range []string{a.Kind.String(), a.Kind.String() + "v"} {
			b, err := bench.Find(name)
			if err != nil || a.Kind == coll.ReduceScatter {
				continue
			}
			want := ""
			switch {
			case a.Needs.Regular && b.Irregular:
				want = "the blocks have different lengths"
			case a.Needs.Nodes:
				want = "all ranks are on one node"
			}
			if ok, why := variantServes(b, a.Name, oneNode(8), 1<<20); ok != (want == "") || why != want {
				t.Errorf("%s by %s is served: %v, %q; the reason against it should be %q", name, a.Name, ok, why, want)
			}
		}
	}
	got := muster(t, t.TempDir(), "bench", "iallreduce", "-n", "2", "--sizes", "8", "--algorithm", "segment")
	if got.status == 0 || !strings.Contains(got.err, "nonblocking calls use messages") || got.out != "" {
		t.Errorf("a non-blocking call in shared memory was measured: %+v", got)
	}
}

func TestTuneRejectsBadFlags(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "poem.txt"), []byte("roses are red"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-n", "1"}, "nothing to choose"},
		{[]string{"--rounds", "0"}, "at least one"},
		{[]string{"--collectives", "allredcue"}, "use some of [barrier"},
		{[]string{"--sizes", "big"}, "want a number of bytes"},
		{[]string{"--out", "poem.txt"}, "exists and is not a tuning table"},
	} {
		got := muster(t, dir, append([]string{"tune"}, c.args...)...)
		if got.status == 0 || !strings.Contains(got.err, c.want) || got.out != "" {
			t.Errorf("muster tune %q must be refused with %q; got %+v", c.args, c.want, got)
		}
	}
}

// A job has the ranks that it has.
func TestTuneInJob(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "-n", "2", self, "tune", "--quick", "--collectives", "barrier", "--budget", "100us"}
	if got := muster(t, t.TempDir(), args...); got.status != 0 || !strings.Contains(got.out, "rules for 2 ranks") {
		t.Errorf("muster %q must measure the job: %+v", args, got)
	}
	args = append(args, "-n", "4")
	if got := muster(t, t.TempDir(), args...); got.status == 0 || !strings.Contains(got.err, "-n 4, but the job has 2 ranks") {
		t.Errorf("muster %q must be refused: %+v", args, got)
	}
}

func TestTuneWritesUsableTable(t *testing.T) {
	dir := t.TempDir()
	got := muster(t, dir, "tune", "-n", "2", "--quick", "--collectives", "barrier,allreduce", "--sizes", "8,1K", "--budget", "100us", "--json")
	var row tuneRow
	if err := json.NewDecoder(strings.NewReader(got.out)).Decode(&row); err != nil || row.Collective != "barrier" || !strings.Contains(got.err, "muster-tuning.json: ") {
		t.Fatalf("%v, %+v, %+v", err, row, got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "muster-tuning.json"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := coll.ParseTuning(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 100, 1 << 20} {
		s := coll.EqualBlocks(coll.Allreduce, 0, 2, 0, size)
		c, err := coll.Choose(&s, &coll.Model{Startup: 1e-6, PerByte: 1e-9}, table)
		if err != nil || !strings.Contains(c.Why, "tuning table") {
			t.Errorf("allreduce of %d bytes on 2 ranks is chosen by %q (%v), not by the table\n%s", size, c.Why, err, text)
		}
	}
	t.Setenv("MUSTER_TUNING", "muster-tuning.json")
	if got := muster(t, dir, "explain", "allreduce", "--size", "1K"); !strings.Contains(got.out, "of the tuning table") {
		t.Errorf("a job does not use the table: %+v", got)
	}
}

func TestExplainCollective(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"allreduce", "--size", "64KB", "-n", "16"}, []string{"allreduce among 16 ranks", "a message costs", "estimated at", "lowest estimated cost", "times as long"}},
		{[]string{"allgather", "-n", "9"}, []string{"from bytes", "any", "blocking calls use the shared memory of the host instead:", "segment      ", "node-phases  never: all ranks are on one host"}},
		{[]string{"barrier", "-n", "5"}, []string{"barrier among 5 ranks", "dissemination"}},
	} {
		got := muster(t, t.TempDir(), append([]string{"explain"}, c.args...)...)
		for _, want := range c.want {
			if got.status != 0 || !strings.Contains(got.out, want) {
				t.Errorf("muster explain %q does not print %q: %+v", c.args, want, got)
			}
		}
	}
	for _, c := range []struct{ flag, value, want string }{{"--size", "big", "want a number"}, {"-n", "1", "nothing to choose"}} {
		if got := muster(t, t.TempDir(), "explain", "allreduce", c.flag, c.value); got.status == 0 || !strings.Contains(got.err, c.want) {
			t.Errorf("muster explain allreduce %s %s must be refused with %q; got %+v", c.flag, c.value, c.want, got)
		}
	}
}

// oneHost returns the shape of ranks that share a node.
func oneHost(ranks int) jobShape { return jobShape{oneNode(ranks), 1} }
