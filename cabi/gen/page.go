package main

// The reference page: every function, by chapter of the standard.

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/cabi/core"
)

// chapter is a chapter of MPI-4.1 with a pattern for the names of its functions, without MPI_.
type chapter struct {
	number int // by which the page is ordered
	title  string
	names  *regexp.Regexp
}

// chapters are in the order in which names are compared with them: the first match counts.
var chapters = []chapter{
	newChapter(99, "Extensions of MPICH", `^MPI[XI]+_`),
	newChapter(15, "15 Tools", `^T_|^Pcontrol`),
	newChapter(14, "14 Files", `^File_|^Register_datarep`),
	newChapter(18, "18 Language bindings", `_[cf]2[cf]|^Status_.*f08|^Type_(create_f90|match_size)`),
	newChapter(16, "16, 17 Deprecated and removed functions", `^Address$|^Attr_|^Keyval_|^Errhandler_(create|get|set)$|^Type_(extent|hindexed|hvector|lb|struct|ub)$|^Info_get(_valuelen)?$`),
	newChapter(7, "7 Groups, contexts, communicators, caching", `^Group_|_(create|free)_keyval$|^(Comm|Win|Type)_(set|get|delete)_attr$|^(Comm|Win|Type)_[sg]et_name$|^Intercomm_|^Comm_(size|rank|compare|dup|idup|dup_with_info|idup_with_info|create|create_group|create_from_group|split|split_type|free|set_info|get_info|test_inter|remote_size|remote_group|group)$`),
	newChapter(11, "11 Start, end and more processes", `^(Init|Finalize|Session|Is_thread|Query_thread)|^(Comm_(spawn|connect|accept|disconnect|join|get_parent)|Open_port|Close_port|Publish|Unpublish|Lookup)|^Abort$`),
	newChapter(9, "9 Environment", `err(or|handler)|^Errhandler|^Alloc_mem|^Free_mem|^W(time|tick)|^Get_(version|library_version|processor_name)`),
	newChapter(12, "12 One-sided communication", `^Win_|^(R?put|R?get|R?accumulate|R?get_accumulate|fetch_and_op|compare_and_swap)$`),
	newChapter(10, "10 Info", `^Info_`),
	newChapter(8, "8 Topologies", `^(Cart|Graph|Dist_graph|Topo|Dims|I?neighbor)`),
	newChapter(4, "4 Partitioned communication", `^(Psend|Precv|Pready|Parrived)`),
	newChapter(13, "13 External interfaces", `^Grequest_|^Status_set_`),
	newChapter(6, "6 Collective communication", `^(I?(barrier|bcast|gather|scatter|allgather|alltoall|reduce|allreduce|scan|exscan)(v|w|_scatter|_scatter_block|_local)?(_init)?|Op_.*)$`),
	newChapter(5, "5 Datatypes", `^(Type_|Pack|Unpack|Get_address|Get_elements|Aint_|Get_count)`),
	newChapter(3, "3 Point-to-point communication", `.`),
}

func newChapter(number int, title, pattern string) chapter {
	return chapter{number, title, regexp.MustCompile(`(?i)` + pattern)}
}

// notStandard are the functions that the ABI of MPI 5.0 does not have, besides extensions.
var notStandard = regexp.MustCompile(`^MPI_(Address|Errhandler_(create|get|set)|(File|Status)_(c2f|f2c)|Type_(extent|hindexed|hvector|lb|struct|ub))$|^MPI[XI]+_`)

func page(functions []function) ([]byte, error) {
	implemented := core.Implemented()
	wide := map[string]bool{}
	for _, f := range functions {
		if narrow, ok := strings.CutSuffix(f.name, "_c"); ok {
			wide[narrow] = true
		}
	}
	rows := map[string][]string{}
	there, total := 0, 0
	for _, f := range functions {
		has := f.front || implemented[f.name]
		total++
		if has {
			there++
		}
		narrow, isWide := strings.CutSuffix(f.name, "_c")
		if isWide {
			if has != implemented[narrow] {
				return nil, fmt.Errorf("only one of %s and %s is implemented: the page has one row for both", f.name, narrow)
			}
			continue
		}
		name := "`" + f.name + "`"
		if wide[f.name] {
			name += ", `_c`"
		}
		state, abi := "yes", "MPICH, MPI 5.0"
		if !has {
			state = "**no**"
		}
		if notStandard.MatchString(f.name) {
			abi = "MPICH"
		}
		short := strings.TrimPrefix(f.name, "MPI_")
		for _, c := range chapters {
			if c.names.MatchString(short) {
				rows[c.title] = append(rows[c.title], fmt.Sprintf("| %s | %s | %s |\n", name, state, abi))
				break
			}
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<!-- Generated from cabi/functions.txt by go generate in cabi. Do not edit. -->
# Functions of the C interface

All %d functions of MPICH 4.0 exist in Muster's `+"`libmpich.so.12`"+`, each with its second name `+"`PMPI_`"+`; %d are
implemented. The others end the job with a message that names them ([C and Fortran programs](../guide/c-programs.md)).

"ABI" says which binary interfaces have the function: that of MPICH, which the library has, and the standard one of MPI 5.0.
`+"`_c`"+` marks a second function with large counts, which has that ending. Chapters are those of MPI-4.1.
`, total, there)
	for _, c := range slices.SortedFunc(slices.Values(chapters), func(a, b chapter) int { return a.number - b.number }) {
		if len(rows[c.title]) == 0 {
			return nil, fmt.Errorf("no function is in the chapter %q", c.title)
		}
		fmt.Fprintf(&b, "\n## %s\n\n| function | implemented | ABI |\n| --- | --- | --- |\n%s", c.title, strings.Join(rows[c.title], ""))
	}
	return b.Bytes(), nil
}
