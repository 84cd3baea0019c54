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

func page(functions []function, of *abi) ([]byte, error) {
	implemented := core.ImplementedFunctions()
	wide := map[string]bool{}
	for _, f := range functions {
		if narrow, ok := strings.CutSuffix(f.name, "_c"); ok {
			wide[narrow] = true
		}
	}
	lists := map[string]*[2][]string{} // implemented and absent functions of a chapter
	there, total := 0, 0
	for _, f := range of.functions(functions) {
		has := f.front || implemented[f.name]
		total++
		if has {
			there++
		}
		narrow, isWide := strings.CutSuffix(f.name, "_c")
		if isWide {
			if has != implemented[narrow] {
				return nil, fmt.Errorf("only one of %s and %s is implemented: the page has one name for both", f.name, narrow)
			}
			continue
		}
		name, absent := "`"+f.name+"`", 0
		if wide[f.name] {
			name += "\\*"
		}
		if notStandard.MatchString(f.name) {
			name += "†"
		}
		if !has {
			absent = 1
		}
		short := strings.TrimPrefix(f.name, "MPI_")
		i := slices.IndexFunc(chapters, func(c chapter) bool { return c.names.MatchString(short) })
		list := lists[chapters[i].title] // the last one matches all names
		if list == nil {
			list = &[2][]string{}
			lists[chapters[i].title] = list
		}
		list[absent] = append(list[absent], name)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<!-- Generated from cabi/functions.txt by go generate in cabi. Do not edit. -->
# Functions of the C interface

The %d functions of MPICH 4.0 and those that MPI-4.1 has added exist in Muster's `+"`libmpich.so.12`"+`, each with its second name `+"`PMPI_`"+`, and but for extensions
of MPICH also in `+"`libmpi.so.40`"+` and `+"`libmpi_abi.so.1`"+`; %d are implemented. The others end the job with a message that names them ([C and Fortran programs](../guide/c-programs.md)).

\* marks a second function with large counts, which ends in `+"`_c`"+`. † marks functions that the ABI of MPICH has, and the standard one
of MPI 5.0 has not. Chapters are those of MPI-4.1.
`, total, there)
	for _, c := range slices.SortedFunc(slices.Values(chapters), func(a, b chapter) int { return a.number - b.number }) {
		list := lists[c.title]
		if list == nil {
			return nil, fmt.Errorf("no function is in the chapter %q", c.title)
		}
		fmt.Fprintf(&b, "\n## %s\n", c.title)
		for i, intro := range []string{"", "**Not implemented:** "} {
			if len(list[i]) > 0 {
				fmt.Fprintf(&b, "\n%s%s\n", intro, strings.Join(list[i], ", "))
			}
		}
	}
	return b.Bytes(), nil
}
