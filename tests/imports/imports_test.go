package main

import (
	"strings"
	"testing"
)

func TestKinds(t *testing.T) {
	s := newState(map[string]bool{"MPI_Send": true, "PMPI_File_open": true, "MPI_Comm_spawn": true, "ompi_mpi_int": true, "MPI_Later": true},
		map[string]bool{"MPI_Send": true, "MPI_File_open": false, "MPI_Comm_spawn": false, "MPI_Later": false})
	s.add(map[string]bool{"mpi_send_": true, "mpi_file_open_f08_": true})
	for name, want := range map[string]kind{
		"MPI_Send": resolved, "ompi_mpi_int": resolved, "mpi_send_": resolved, "PMPI_File_open": file, "mpi_file_open_f08_": file,
		"MPI_Comm_spawn": spawn, "MPI_Later": lacking, "MPI_Recv": missing,
	} {
		if got := s.kindOf(name); got != want {
			t.Errorf("%s is of kind %d, want %d", name, got, want)
		}
	}
	r := &result{family: family{name: "X"}, unresolved: map[string][]string{}}
	r.count("a", []string{"MPI_Send"}, s)
	r.count("b", []string{"MPI_Send", "PMPI_File_open"}, s)
	r.count("c", []string{"MPI_Recv"}, s)
	r.count("d", nil, s)
	text := report([]*result{r})
	for _, want := range []string{"| checked | 4 |", "everything is defined and implemented | 1 |", "| import functions of files | 1 |", "`MPI_Recv`, imported by c", "X, import functions of files: b\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"MPI_Init": true, "PMPI_Init": true, "mpi_init_": true, "MPIX_Query_cuda_support": true, "ompi_mpi_comm_world": true, "opal_atomic": true,
		"mpi_helper": false, "my_MPI_Init": false, "_ZN3MPI4InitEv": false,
	} {
		if got := names.MatchString(name); got != want {
			t.Errorf("%s is a name of MPI: %v, want %v", name, got, want)
		}
	}
}
