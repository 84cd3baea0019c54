package coll

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// The tables of docs/reference/algorithms.md are made from the table of algorithms and from
// the graphs that they build, so that they are never out of date. A table is between
// two lines:
//
//	<!-- table of allgather -->
//	<!-- end -->

var writeDocument = flag.Bool("document.write", false, "write the tables of docs/reference/algorithms.md anew")

const document = "../../docs/reference/algorithms.md"

// documentRanks are the numbers of ranks in the tables.
var documentRanks = []int{8, 9, 16}

func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	today := string(text)
	tables := map[string]string{"forms in shared memory": documentForms()}
	for kind := range kinds {
		tables[kind.String()] = documentTable(t, kind)
	}
	for name, table := range tables {
		first := fmt.Sprintf("<!-- table of %s -->\n", name)
		const last = "<!-- end -->\n"
		before, rest, found := strings.Cut(today, first)
		_, after, ended := strings.Cut(rest, last)
		if !found || !ended { // a new kind
			before, after = today+"\n## "+name+"\n\n", ""
		}
		today = before + first + table + last + after
	}
	if today == string(text) {
		return
	}
	if !*writeDocument {
		t.Fatal("the tables of docs/reference/algorithms.md are not those of the algorithms: go test ./internal/coll -run TestDocument -document.write, and look at what has changed")
	}
	if err := os.WriteFile(document, []byte(today), 0o644); err != nil {
		t.Fatal(err)
	}
}

// documentForms returns the table of forms in shared memory.
func documentForms() string {
	var b strings.Builder
	b.WriteString("| form | what it does | limits with a core for each rank | where ranks share cores | source |\n| --- | --- | --- | --- | --- |\n")
	for _, f := range HostForms() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", f.Name, f.About, documentLimits(f.Cores), documentLimits(f.SharedCores), f.Ref)
	}
	return b.String()
}

// documentLimits lists the kinds that have the same limit together.
func documentLimits(l Limits) string {
	var order []int
	by := map[int][]string{}
	for k, limit := range l {
		if limit < 0 {
			continue
		}
		if by[limit] == nil {
			order = append(order, limit)
		}
		by[limit] = append(by[limit], Kind(k).String())
	}
	if order == nil {
		return "–"
	}
	var parts []string
	for _, limit := range order {
		list := strings.Join(by[limit], ", ")
		if limit > 0 {
			list = fmt.Sprintf("%s: %d", list, limit)
		}
		parts = append(parts, list)
	}
	return strings.Join(parts, "; ")
}

func documentTable(t *testing.T, kind Kind) string {
	var b strings.Builder
	sends := "data sent"
	switch {
	case kind == Barrier:
		sends = "messages"
	case hasBlocks(kind) || kind == Neighbors:
		sends = "blocks sent"
	}
	fmt.Fprintf(&b, "|algorithm|what it does|steps|%s|parameters|source|\n", sends)
	b.WriteString("|---|---|---|---|---|---|\n")
	for _, a := range AlgorithmsOf(kind) {
		totals := make([]*sched.Totals, len(documentRanks))
		for i, n := range documentRanks {
			totals[i] = documentTotals(t, a, n)
		}
		steps := join(totals, func(t *sched.Totals) string { return orNone(t, func() string { return strconv.Itoa(t.Steps) }) })
		sent := join(totals, func(s *sched.Totals) string {
			return orNone(s, func() string {
				if kind == Barrier {
					return strconv.Itoa(s.Messages)
				}
				return strconv.FormatFloat(math.Round(float64(s.MostSent)*100/documentBytes)/100, 'f', -1, 64)
			})
		})
		fmt.Fprintf(&b, "|%s|%s%s|%s|%s|%s|%s|\n", a.Name, a.About, documentNeeds(a), steps, sent, documentParams(a), a.Ref)
	}
	return b.String()
}

// documentBytes is the length of the data, or of a block: four default segments of a
// pipeline.
const documentBytes = 1 << 18

// documentTotals returns the totals of an algorithm with its default parameters, or nil
// if it is not applicable.
func documentTotals(t *testing.T, a *Algorithm, ranks int) *sched.Totals {
	s := Shape{Kind: a.Kind, Size: ranks, Elem: 8, Commutes: true, Bytes: documentBytes, Nodes: put(a, ranks)}
	s.Send.Each, s.Recv.Each = documentBytes, documentBytes
	if ok, _ := Applicable(a, &s); !ok {
		return nil
	}
	var graphs []*sched.Graph
	for _, s := range everyone(s) {
		if a.Kind == Neighbors { // a ring
			s.Sources = []int{(s.Rank + ranks - 1) % ranks, (s.Rank + 1) % ranks}
			s.Dests = s.Sources
		}
		var b sched.Builder
		g, err := a.Graph(&b, &s, a.Default())
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	total, err := sched.Total(graphs)
	if err != nil {
		t.Fatalf("%s by %s among %d ranks: %v", a.Kind, a.Name, ranks, err)
	}
	return &total
}

func documentNeeds(a *Algorithm) string {
	var list []string
	for _, n := range []struct {
		needed bool
		what   string
	}{{a.Needs.Commutes, "a commuting operation"}, {a.Needs.PowerOfTwo, "2^n ranks"},
		{a.Needs.Regular, "equal blocks"}, {a.Needs.Even, "an even number of ranks"},
		{a.Needs.MinRanks > 0, fmt.Sprintf("%d ranks", a.Needs.MinRanks)}, {a.Needs.WholeBlocks, "an element for each rank"},
		{a.Needs.Nodes, "several nodes"}} {
		if n.needed {
			list = append(list, n.what)
		}
	}
	if list == nil {
		return ""
	}
	return " Needs " + strings.Join(list, ", ") + "."
}

func documentParams(a *Algorithm) string {
	var list []string
	for _, p := range a.Params {
		list = append(list, fmt.Sprintf("`%s` %s", p.Name, join(p.Values, strconv.Itoa)))
	}
	return strings.Join(list, ", ")
}

func orNone(t *sched.Totals, text func() string) string {
	if t == nil {
		return "–"
	}
	return text()
}

func join[T any](list []T, text func(T) string) string {
	var words []string
	for _, v := range list {
		words = append(words, text(v))
	}
	return strings.Join(words, "/")
}
