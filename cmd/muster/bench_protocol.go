package main

// --protocol: names for the settings that select the protocol of long messages.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/mpi"
)

const speculate = "MUSTER_SPECULATE="

// protocolRow is a name and its settings; all other settings stay as configured.
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

// protocolSettings returns the settings of a name. A library without speculation does
// not need the setting that disables it; any other unsupported setting is an error.
func protocolSettings(name string) ([]string, error) {
	i := slices.IndexFunc(protocolRows, func(row protocolRow) bool { return row.name == name })
	if i < 0 {
		return nil, fmt.Errorf("--protocol %s: unknown protocol; use one of %s", name, protocolNames())
	}
	var settings []string
	for _, kv := range protocolRows[i].settings {
		_, err := mpi.ConfigFromEnv([]string{kv})
		if err != nil && kv == speculate+"never" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("--protocol %s: this build of the library does not support it: %w", name, err)
		}
		settings = append(settings, kv)
	}
	return settings, nil
}

func speculates() bool {
	_, err := protocolSettings("spec")
	return err == nil
}
