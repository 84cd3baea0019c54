package needs

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Family is an ABI: the libraries of MPI that a program can use.
type Family int

const (
	None    Family = iota // no MPI
	Unknown               // a script, or a program that loads libraries when it runs
	MPICH
	OpenMPI
	Standard // of MPI-5.0
)

// String returns the name of the flag of muster run.
func (f Family) String() string { return [...]string{"none", "unknown", "mpich", "openmpi", "mpi5"}[f] }

// Library returns the file name of our library for the family.
func (f Family) Library() string {
	return [...]string{"", "", "libmpich.so.12", "libmpi.so.40", "libmpi_abi.so.1"}[f]
}

// CoreLibrary is the part of our libraries that they load in MPI_Init. It lies beside them.
const CoreLibrary = "libmuster_core.so"

// Ours reports whether a library is one of ours.
func Ours(library string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(library), CoreLibrary))
	return err == nil
}

// familyOf returns the family of a shared library, or None.
func familyOf(lib string) Family {
	name, version, ok := strings.Cut(lib, ".so.")
	version, _, _ = strings.Cut(version, ".")
	switch {
	case !ok:
	case version == "12" && (strings.HasPrefix(name, "libmpich") || name == "libmpi" || name == "libmpifort" || name == "libmpicxx"):
		return MPICH
	case version == "1" && name == "libmpi_abi":
		return Standard
	case version == "40" && (name == "libmpi" || strings.HasPrefix(name, "libmpi_")):
		return OpenMPI
	}
	return None
}

// Of returns what a program needs, itself or through its libraries. path is where it looks for them
// first, as in LD_LIBRARY_PATH. The error names the libraries of a program that needs two
// families: no process can have two sets of MPI constants.
func Of(prog string, path []string) (Family, error) {
	file, err := elf.Open(prog)
	if err != nil {
		return Unknown, nil // a script, or a program of another host
	}
	defer file.Close()
	if !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return None, nil // it loads no libraries
	}
	s := search{path: path, seen: map[string]bool{}}
	s.look(file, prog)
	switch {
	case len(s.found) == 0:
		return Unknown, nil
	case len(s.found) > 1:
		var list []string
		for _, f := range []Family{MPICH, OpenMPI, Standard} {
			if by, ok := s.found[f]; ok {
				list = append(list, by)
			}
		}
		return None, fmt.Errorf("%s needs the MPI libraries of two ABIs: %s; build all of it for one of them", prog, strings.Join(list, ", and "))
	}
	for f := range s.found {
		return f, nil
	}
	return None, nil
}

// search looks through the libraries of a program.
type search struct {
	path  []string          // LD_LIBRARY_PATH
	last  []string          // folders of ld.so, read with the first library
	seen  map[string]bool   // libraries
	found map[Family]string // the library, and what needs it
}

// mostLibraries bounds a search.
const mostLibraries = 1000

func (s *search) look(file *elf.File, name string) {
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return
	}
	run, _ := file.DynString(elf.DT_RUNPATH)
	old, _ := file.DynString(elf.DT_RPATH)
	own := append(old, run...)
	for _, lib := range libraries {
		if s.seen[lib] || len(s.seen) > mostLibraries {
			continue
		}
		s.seen[lib] = true
		if f := familyOf(lib); f != None {
			if s.found == nil {
				s.found = map[Family]string{}
			}
			if s.found[f] == "" {
				s.found[f] = fmt.Sprintf("%s (needed by %s)", lib, filepath.Base(name))
			}
			continue
		}
		if at := s.find(lib, own, filepath.Dir(name)); at != "" {
			if f, err := elf.Open(at); err == nil {
				s.look(f, at)
				f.Close()
			}
		}
	}
}

// find returns the path of a library, or "".
func (s *search) find(lib string, own []string, origin string) string {
	var folders []string
	for _, list := range own {
		for _, folder := range filepath.SplitList(list) {
			folders = append(folders, strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(folder))
		}
	}
	if s.last == nil {
		s.last = systemFolders()
	}
	folders = slices.Concat(folders, s.path, s.last)
	for _, folder := range folders {
		at := filepath.Join(folder, lib)
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() {
			return at
		}
	}
	return ""
}

// systemFolders returns the folders of ld.so.
func systemFolders() []string {
	folders, _ := filepath.Glob("/usr/lib/*-linux-gnu*") // the pattern is valid
	for _, file := range append([]string{"/etc/ld.so.conf"}, glob("/etc/ld.so.conf.d/*.conf")...) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") {
				folders = append(folders, line)
			}
		}
	}
	return append(folders, "/usr/lib", "/lib", "/usr/lib64", "/lib64", "/usr/local/lib")
}

func glob(pattern string) []string {
	files, _ := filepath.Glob(pattern)
	return files
}
