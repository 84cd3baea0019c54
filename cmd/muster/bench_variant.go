package main

// Variants that a benchmark compares: protocols of long messages (--protocol), algorithms
// of a collective (--algorithm), or devices (--device). Each is a setting of a job.

import (
	"fmt"
	"os"
	"strings"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// variantFlag returns the name of the flag that lists the variants.
func variantFlag(b bench.Benchmark) string {
	switch {
	case b.Collective != "":
		return "algorithm"
	case b.Devices:
		return "device"
	}
	return "protocol"
}

// variantSettings returns the settings of a variant as environment variables.
func variantSettings(b bench.Benchmark, name string) ([]string, error) {
	switch {
	case b.Devices:
		return deviceSettings(name)
	case b.Collective == "":
		return protocolSettings(name)
	}
	setting := b.Collective + "=" + name
	if _, err := mpi.ConfigFromEnv([]string{"MUSTER_COLLECTIVE=" + setting}); err != nil {
		return nil, fmt.Errorf("--algorithm %s: %w", name, err)
	}
	// It comes before the user's rules, because the first matching rule applies.
	if set := os.Getenv("MUSTER_COLLECTIVE"); set != "" {
		setting += "," + set
	}
	return []string{"MUSTER_COLLECTIVE=" + setting}, nil
}

// useVariant sets the environment of a variant before the rank joins its job.
func useVariant(b bench.Benchmark, name string) error {
	settings, err := variantSettings(b, name)
	if err != nil {
		return err
	}
	for _, kv := range settings {
		key, value, _ := strings.Cut(kv, "=")
		if err := os.Setenv(key, value); err != nil {
			return err
		}
	}
	return nil
}

// variantServes reports whether an algorithm supports the calls of a benchmark, and if
// not, why. The library would use another algorithm instead, and its time must not be
// reported under this name.
func variantServes(b bench.Benchmark, name string, on layout, size int) (ok bool, why string) {
	if b.Collective == "" {
		return true, ""
	}
	name, _, _ = strings.Cut(name, ":")
	if name == coll.Segment.Name {
		switch {
		case b.NonBlocking:
			return false, "nonblocking calls use messages"
		case b.Irregular:
			return false, "blocks may have different lengths"
		case on.nodes > 1:
			return false, "the ranks are on several nodes"
		}
		return true, ""
	}
	kind, err := coll.ParseKind(b.Collective)
	if err != nil {
		return false, err.Error()
	}
	a, err := coll.Find(kind, name)
	if err != nil {
		return false, err.Error()
	}
	shape := benchmarkShape(b, kind, on, size)
	return coll.Applicable(a, &shape)
}

// layout is the number of ranks of a benchmark and the number of nodes they run on.
type layout struct{ ranks, nodes int }

// oneNode returns the layout of ranks that share a node.
func oneNode(ranks int) layout { return layout{ranks, 1} }

func (p layout) String() string {
	if p.nodes > 1 {
		return fmt.Sprintf("%d ranks on %d nodes", p.ranks, p.nodes)
	}
	return fmt.Sprintf("%d ranks", p.ranks)
}

// layoutOf returns the layout of the ranks of c. It sends no message, so it does not
// change the state of the job before the benchmark.
func layoutOf(c *mpi.Comm, b bench.Benchmark) (layout, error) {
	if b.Collective == "" {
		return oneNode(c.Size()), nil
	}
	x, err := inspect.ExplainCollective(c, b.Collective, 0, 0)
	if err != nil {
		return layout{}, err
	}
	return layout{c.Size(), x.Nodes}, nil
}

// keepServed returns the sizes that the algorithm supports.
func keepServed(b bench.Benchmark, name string, on layout, sizes []int) (kept []int, err error) {
	tried := sizes
	if tried == nil {
		tried = []int{0}
	}
	var last string
	for _, size := range tried {
		ok, why := variantServes(b, name, on, size)
		if ok {
			kept = append(kept, size)
		} else {
			last = why
		}
	}
	if kept == nil {
		return nil, fmt.Errorf("bench %s: --algorithm %s is not possible among %v: %s", b.Name, name, on, last)
	}
	if sizes == nil {
		kept = nil
	}
	return kept, nil
}

// benchmarkShape returns the call that a benchmark makes for a size: on bytes, or on
// elements of eight bytes for reductions. Support does not depend on which ranks share a
// node, so they are distributed evenly.
func benchmarkShape(b bench.Benchmark, kind coll.Kind, on layout, size int) coll.Shape {
	if kind.Combines() {
		size = max(size/8, 1) * 8
	}
	if kind == coll.ReduceScatter {
		size /= on.ranks
	}
	s := coll.EqualBlocks(kind, 0, on.ranks, 0, size)
	nodeOf := make([]int, on.ranks)
	for r := range nodeOf {
		nodeOf[r] = r * on.nodes / on.ranks
	}
	s.Nodes = coll.NewTopology(nodeOf, 1)
	if s.Elem = 1; kind.Combines() {
		s.Elem = 8
	}
	s.Send.Irregular, s.Recv.Irregular = b.Irregular, b.Irregular
	if kind == coll.Alltoall && b.Irregular && !b.NonBlocking {
		s.Carried = []coll.Blocks{} // blocking calls exchange the lengths if the algorithm is named
	}
	return s
}

// algorithmNames returns the names of a collective's algorithms.
func algorithmNames(collective string) string {
	var names []string
	for _, a := range coll.Algorithms() {
		if a.Kind.String() == collective {
			names = append(names, a.Name)
		}
	}
	return strings.Join(names, ", ")
}
