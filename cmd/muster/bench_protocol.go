package main

// --protocol: names for the settings that select the protocol of long messages.

import (
	"fmt"
	"slices"
	"strings"
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

// protocolSettings returns the settings of a name.
func protocolSettings(name string) ([]string, error) {
	i := slices.IndexFunc(protocolRows, func(row protocolRow) bool { return row.name == name })
	if i < 0 {
		return nil, fmt.Errorf("--protocol %s: unknown protocol; use one of %s", name, protocolNames())
	}
	return protocolRows[i].settings, nil
}
