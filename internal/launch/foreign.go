package launch

// Programs of MPI libraries that do not use the launcher's protocol. Each process of such
// a program would be a job of one rank, unnoticed.

import (
	"debug/elf"
	"fmt"
	"strings"
)

// checkLibrary returns an error for a program that is linked with Open MPI. Scripts and
// programs that load the library later are not recognized.
func checkLibrary(prog string, ranks int) error {
	if ranks < 2 {
		return nil
	}
	file, err := elf.Open(prog)
	if err != nil {
		return nil // a script, or a program of another system
	}
	defer file.Close()
	libraries, _ := file.ImportedLibraries()
	for _, lib := range libraries {
		if isOpenMPI(lib) {
			return fmt.Errorf("%s is built with Open MPI (%s) and would run as %d jobs of one rank each, because it does not use the launcher's protocol, PMI-1; "+
				"start it with Open MPI's mpirun, or build it with MPICH", prog, lib, ranks)
		}
	}
	return nil
}

// isOpenMPI reports whether a shared library is that of Open MPI. MPICH's is libmpich.so.12
// or libmpi.so.12. The latter was also the name in Open MPI 1.8 and 1.10, which are not
// recognized.
func isOpenMPI(lib string) bool {
	version, ok := strings.CutPrefix(lib, "libmpi.so.")
	return ok && version != "12" || strings.HasPrefix(lib, "libopen-rte.") || strings.HasPrefix(lib, "libopen-pal.")
}
