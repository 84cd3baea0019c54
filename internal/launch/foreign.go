package launch

// Programs of MPI libraries that do not use the launcher's protocol. Each process of such
// a program would be a job of one rank, unnoticed. Executables are checked before they are
// started. Others, such as those that a script starts and the interpreters that load the
// library themselves, are found by what their processes have mapped (foreign_linux.go).

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-mpi/muster/internal/needs"
)

// checkLibrary returns an error for an executable that is linked with such a library.
func checkLibrary(prog string, ranks int, env []string) error {
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
		if isForeignMPI(lib) && !providesFront(env) {
			return fmt.Errorf("%s is linked with %s", prog, foreignText(lib, ranks))
		}
	}
	return nil
}

// foreignText describes a library, and what to do.
func foreignText(lib string, ranks int) string {
	return fmt.Sprintf("%s, the library of Open MPI or of another MPI without PMI-1, the launcher's protocol: the job would be %d jobs of one rank each. "+
		"Muster's own libraries for programs of Open MPI 4 and 5 and of MPICH (make cabi) are found by muster run if they are in its folder; or compile the program with muster cc; or use the launcher of that MPI, mpirun", lib, ranks)
}

// providesFront reports whether the library path of an environment leads to Muster's library for
// programs of Open MPI.
func providesFront(env []string) bool {
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "LD_LIBRARY_PATH="); ok {
			path = v
		}
	}
	for _, folder := range filepath.SplitList(path) {
		library := filepath.Join(folder, needs.OpenMPI.Library())
		if _, err := os.Stat(library); err == nil {
			return needs.Ours(library)
		}
	}
	return false
}

// isForeignMPI reports whether a shared library is that of an MPI without PMI-1. MPICH and
// the libraries with its ABI, which use PMI-1, are libmpich.so.12 or libmpi.so.12. The latter
// was also the name in Open MPI 1.8 and 1.10, which are not recognized. Other libraries have
// similar names: libmpir.so, for one, is for large integers.
func isForeignMPI(lib string) bool {
	name, version, ok := strings.Cut(lib, ".so.")
	switch {
	case !ok:
		return false
	case name == "libmpi":
		return version != "12" && !strings.HasPrefix(version, "12.")
	case name == "libmpi_abi": // MPI-5.0 section 20: of any MPI
		return false
	}
	return strings.HasPrefix(name, "libmpi_")
}
