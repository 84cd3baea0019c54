//go:build !windows

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi/inspect"
)

func TestBenchChoice(t *testing.T) {
	got := muster(t, t.TempDir(), "bench", "choice", "-n", "3", "--op", "barrier,allgather", "--sizes", "8,1K", "--final", "1ms", "--json")
	if got.status != 0 {
		t.Fatalf("%+v", got)
	}
	seen := map[string]int{}
	for d := json.NewDecoder(strings.NewReader(got.out)); d.More(); {
		var r bench.Result
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if seen[r.Metric]++; r.Value <= 0 || r.Ranks != 3 || (r.Protocol == "") != (r.Unit == "ratio") {
			t.Errorf("a figure is %+v", r)
		}
	}
	for metric, want := range map[string]int{"barrier/choice-by-best": 1, "allgather/choice-by-best": 2, "allgather/choice": 2, "allgather/best": 2} {
		if seen[metric] != want {
			t.Errorf("%d figures are %s, want %d:\n%s", seen[metric], metric, want, got.out)
		}
	}
	for _, c := range []struct {
		flag, value, want string
	}{{"--op", "allredcue", "use some of [barrier"}, {"--sizes", "big", "want a number of bytes"}, {"--final", "0s", "above 0"}} {
		if got := muster(t, t.TempDir(), "bench", "choice", c.flag, c.value); got.status == 0 || !strings.Contains(got.err, c.want) {
			t.Errorf("muster bench choice %s %s must be refused with %q; got %+v", c.flag, c.value, c.want, got)
		}
	}
}

func TestChoiceCells(t *testing.T) {
	choice := func(name string) inspect.CollectiveChoice { return inspect.CollectiveChoice{Algorithm: name} }
	cells := []choiceCell{cellOf(coll.Scan, 64, []bench.Entry{
		{Choice: choice("linear"), Served: true, Last: true, Times: []float64{10, 30}},
		{Algorithm: "recursive-doubling", Served: true, Last: true, Times: []float64{20, 20}},
		{Algorithm: "hopeless", Served: true, Once: true, Times: []float64{99}},
		{Algorithm: "returned", Served: true, Once: true, Last: true, Times: []float64{25, 25}},
		{Algorithm: "unable"},
	}), cellOf(coll.Scan, 8, []bench.Entry{{Choice: choice("linear"), Served: true, Last: true, Times: []float64{10, 30}}})}
	var b bytes.Buffer
	if err := printCells(&b, cells); err != nil {
		t.Fatal(err)
	}
	const want = `# op  size  choice  us    best other          us    ratio  calls  candidates
scan  64    linear  20.0  recursive-doubling  20.0  1.50   2      3
scan  8     linear  20.0  linear              20.0  1.00   2      0
# scan of 64 bytes: left after one call, as estimated at three times the choice or more: hopeless
`
	if b.String() != want {
		t.Errorf("printed\n%swant\n%s", b.String(), want)
	}
}
