package main

// --protocol: a name for the settings that make long messages travel in a
// certain way.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/mpi"
)

const speculate = "MUSTER_SPECULATE="

// protocolRow is a name and what it sets; everything else stays as configured.
type protocolRow struct {
	name     string
	settings []string
}

var protocolRows = []protocolRow{
	{"get", []string{"MUSTER_RENDEZVOUS=get", speculate + "never"}},
	{"put", []string{"MUSTER_RENDEZVOUS=put", speculate + "never"}},
	{"coop", []string{"MUSTER_RENDEZVOUS=coop", speculate + "never"}},
	{"off", []string{speculate + "never"}},
	{"auto", []string{speculate + "auto"}},
	{"spec", []string{speculate + "always"}},
	{"async", []string{"MUSTER_PROGRESS=async"}},
}

func protocolNames() string {
	var names []string
	for _, row := range protocolRows {
		names = append(names, row.name)
	}
	return strings.Join(names, ", ")
}

// protocolSettings are the settings of a name. A library that has no speculation
// needs not be told to do without it; anything else that it has not is an error.
func protocolSettings(name string) ([]string, error) {
	i := slices.IndexFunc(protocolRows, func(row protocolRow) bool { return row.name == name })
	if i < 0 {
		return nil, fmt.Errorf("--protocol %s: there are %s", name, protocolNames())
	}
	var settings []string
	for _, kv := range protocolRows[i].settings {
		_, err := mpi.ConfigFromEnv([]string{kv})
		if err != nil && kv == speculate+"never" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("--protocol %s: this build of the library does not have it: %w", name, err)
		}
		settings = append(settings, kv)
	}
	return settings, nil
}

func speculates() bool {
	_, err := protocolSettings("spec")
	return err == nil
}
