package main

// What a benchmark can compare: protocols of long messages (--protocol), algorithms
// of a collective (--algorithm), or devices (--device). Each is a setting of a job.

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// variantFlag is the flag that names what is compared.
func variantFlag(b bench.Benchmark) string {
	switch {
	case b.Collective != "":
		return "algorithm"
	case b.Devices:
		return "device"
	}
	return "protocol"
}

// variantSettings are the settings of a name, as in an environment.
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
	// Before what the user has set already: the first rule that fits is taken.
	if set := os.Getenv("MUSTER_COLLECTIVE"); set != "" {
		setting += "," + set
	}
	return []string{"MUSTER_COLLECTIVE=" + setting}, nil
}

// useVariant sets what a name stands for, before the rank joins its job.
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

// inSegment is the name that MUSTER_COLLECTIVE has for shared memory without messages.
const inSegment = "segment"

// variantServes reports whether an algorithm can do the calls of a benchmark, and if not,
// why. The library passes over one that cannot and takes another, whose time must not
// be told under its name.
func variantServes(b bench.Benchmark, name string, on place, size int) (ok bool, why string) {
	if b.Collective == "" {
		return true, ""
	}
	name, _, _ = strings.Cut(name, ":")
	if name == inSegment {
		switch {
		case b.NonBlocking:
			return false, "calls that do not wait take messages"
		case b.Irregular:
			return false, "blocks may have lengths of their own"
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

// place is where a benchmark runs: on so many ranks, which are on so many nodes.
type place struct{ ranks, nodes int }

// oneNode is ranks that share a node.
func oneNode(ranks int) place { return place{ranks, 1} }

func (p place) String() string {
	if p.nodes > 1 {
		return fmt.Sprintf("%d ranks on %d nodes", p.ranks, p.nodes)
	}
	return fmt.Sprintf("%d ranks", p.ranks)
}

// placeOf is where a benchmark of a collective runs on the ranks of c. No message is sent,
// so that the benchmark finds the job as it was.
func placeOf(c *mpi.Comm, b bench.Benchmark) (place, error) {
	if b.Collective == "" {
		return oneNode(c.Size()), nil
	}
	x, err := inspect.ExplainCollective(c, b.Collective, 0, 0)
	if err != nil {
		return place{}, err
	}
	return place{c.Size(), x.Nodes}, nil
}

// keepServed leaves out the sizes that the algorithm cannot do.
func keepServed(b bench.Benchmark, name string, on place, sizes []int) (kept []int, err error) {
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
		return nil, fmt.Errorf("bench %s: --algorithm %s cannot do it among %v: %s", b.Name, name, on, last)
	}
	if sizes == nil {
		kept = nil
	}
	return kept, nil
}

// benchmarkShape is the call that a benchmark makes for a size: of bytes, or of
// numbers of eight bytes where they are combined. Which ranks share a node does not
// matter to what can be done, so they are spread evenly.
func benchmarkShape(b bench.Benchmark, kind coll.Kind, on place, size int) coll.Shape {
	combines := slices.Contains([]coll.Kind{coll.Reduce, coll.Allreduce, coll.ReduceScatter, coll.Scan, coll.Exscan}, kind)
	if combines {
		size = max(size/8, 1) * 8
	}
	if kind == coll.ReduceScatter {
		size /= on.ranks
	}
	s := shapeOf(kind, 0, on.ranks, 0, size)
	nodeOf := make([]int, on.ranks)
	for r := range nodeOf {
		nodeOf[r] = r * on.nodes / on.ranks
	}
	s.Nodes = coll.NewTopology(nodeOf, 1)
	if s.Elem = 1; combines {
		s.Elem = 8
	}
	s.Send.Irregular, s.Recv.Irregular = b.Irregular, b.Irregular
	return s
}

// algorithmNames are those of a collective.
func algorithmNames(collective string) string {
	var names []string
	for _, a := range coll.Algorithms() {
		if a.Kind.String() == collective {
			names = append(names, a.Name)
		}
	}
	return strings.Join(names, ", ")
}
