package main

// What a benchmark can compare: protocols of long messages (--protocol), or
// algorithms of a collective (--algorithm). Either is a setting of a job.

import (
	"fmt"
	"os"
	"strings"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
)

// variantFlag is the flag that names what is compared.
func variantFlag(b bench.Benchmark) string {
	if b.Collective != "" {
		return "algorithm"
	}
	return "protocol"
}

// variantSettings are the settings of a name, as in an environment.
func variantSettings(b bench.Benchmark, name string) ([]string, error) {
	if b.Collective == "" {
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
