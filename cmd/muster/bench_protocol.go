package main

// --protocol: names for the settings that select the protocol of long messages.

import (
	"fmt"
	"strings"

	"github.com/muster-mpi/muster/internal/p2p"
)

// protocolRow is a name and its settings; all other settings stay as configured.
type protocolRow struct {
	name     string
	settings []string
}

// protocolRows lists the protocols that can be forced, and what else a benchmark compares.
func protocolRows() (rows []protocolRow) {
	for _, name := range p2p.Rendezvous() {
		rows = append(rows, protocolRow{name, []string{"MUSTER_RENDEZVOUS=" + name, "MUSTER_SPECULATE=never"}})
	}
	return append(rows,
		protocolRow{"off", []string{"MUSTER_SPECULATE=never"}},
		protocolRow{"auto", []string{"MUSTER_SPECULATE=auto"}},
		protocolRow{"spec", []string{"MUSTER_SPECULATE=always"}},
		protocolRow{"async", []string{"MUSTER_PROGRESS=async"}})
}

func protocolNames() string {
	var names []string
	for _, row := range protocolRows() {
		names = append(names, row.name)
	}
	return strings.Join(names, ", ")
}

// protocolSettings returns the settings of a name.
func protocolSettings(name string) ([]string, error) {
	for _, row := range protocolRows() {
		if row.name == name {
			return row.settings, nil
		}
	}
	return nil, fmt.Errorf("--protocol %s: unknown protocol; use one of %s", name, protocolNames())
}
