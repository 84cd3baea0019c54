package main

// The names of other MPIs' commands. A link of such a name to muster, also with "muster-" before
// it, is the command beside it: build systems want a compiler of one word.

import (
	"path/filepath"
	"slices"
	"strings"
)

// otherName is names of links to muster and the command that they are. "make install" makes all
// of them.
type otherName struct{ names, command []string }

// otherNamesOfCommands returns the table.
func otherNamesOfCommands() []otherName {
	return []otherName{
		{[]string{"mpicc"}, []string{"cc"}},
		{[]string{"mpicxx", "mpic++", "mpiCC"}, []string{"cc", "--cxx"}},
		{[]string{"mpifort", "mpif77", "mpif90"}, []string{"cc", "--fortran"}},
		{[]string{"mpicc_abi"}, []string{"cc", "--abi"}},
		{[]string{"mpicxx_abi"}, []string{"cc", "--cxx", "--abi"}},
		{[]string{"mpiexec", "mpirun"}, []string{"mpiexec"}},
	}
}

// commandOfName returns the arguments that the name of the executable stands for.
func commandOfName(path string) []string {
	name := strings.TrimPrefix(filepath.Base(path), "muster-")
	for _, row := range otherNamesOfCommands() {
		if slices.Contains(row.names, name) {
			return row.command
		}
	}
	return nil
}
