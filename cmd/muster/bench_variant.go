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

// variantServes tells whether an algorithm can do the calls of a benchmark, and if not,
// why. The library passes over one that cannot and takes another, whose time must not
// be told under its name.
func variantServes(b bench.Benchmark, name string, ranks, size int) (ok bool, why string) {
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
	shape := benchmarkShape(b, kind, ranks, size)
	return coll.Applicable(a, &shape)
}

// keepServed leaves out the sizes that the algorithm cannot do.
func keepServed(b bench.Benchmark, name string, ranks int, sizes []int) (kept []int, err error) {
	tried := sizes
	if tried == nil {
		tried = []int{0}
	}
	var last string
	for _, size := range tried {
		ok, why := variantServes(b, name, ranks, size)
		if ok {
			kept = append(kept, size)
		} else {
			last = why
		}
	}
	if kept == nil {
		return nil, fmt.Errorf("bench %s: --algorithm %s cannot do it among %d ranks: %s", b.Name, name, ranks, last)
	}
	if sizes == nil {
		kept = nil
	}
	return kept, nil
}

// benchmarkShape is the call that a benchmark makes for a size: of bytes, or of
// numbers of eight bytes where they are combined.
func benchmarkShape(b bench.Benchmark, kind coll.Kind, ranks, size int) coll.Shape {
	combines := slices.Contains([]coll.Kind{coll.Reduce, coll.Allreduce, coll.ReduceScatter, coll.Scan, coll.Exscan}, kind)
	if combines {
		size = max(size/8, 1) * 8
	}
	if kind == coll.ReduceScatter {
		size /= ranks
	}
	s := shapeOf(kind, 0, ranks, 0, size)
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
