package main

// C and Fortran programs: the ranks load Muster's library for the ABI that the program was built
// for (package cabi), in place of that of another MPI.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/internal/needs"
)

// mpichLibrary is the library of the ABI of MPICH.
var mpichLibrary = needs.MPICH.Library()

// frontFlags say which library the ranks load.
type frontFlags struct{ mpich, openmpi, mpi5, own bool }

func (f *frontFlags) rows() []flagRow {
	return []flagRow{
		{&f.mpich, "mpich", "", "the ranks load Muster's libmpich.so.12, for programs of MPICH (default: what the program needs)"},
		{&f.openmpi, "openmpi", "", "the ranks load Muster's libmpi.so.40, for programs of Open MPI"},
		{&f.mpi5, "mpi5", "", "the ranks load Muster's libmpi_abi.so.1, for programs of the ABI of MPI-5.0"},
		{&f.own, "own-mpi", "", "the ranks load the MPI library that they find, not Muster's"},
	}
}

// family returns the ABI of the flags, or needs.None.
func (f *frontFlags) family() (needs.Family, error) {
	chosen := needs.None
	for _, c := range []struct {
		set    bool
		family needs.Family
	}{{f.mpich, needs.MPICH}, {f.openmpi, needs.OpenMPI}, {f.mpi5, needs.Standard}} {
		if !c.set {
			continue
		}
		if chosen != needs.None || f.own {
			return needs.None, errors.New("--mpich, --openmpi, --mpi5 and --own-mpi exclude each other")
		}
		chosen = c.family
	}
	return chosen, nil
}

// set makes the ranks load the library.
func (f *frontFlags) set(executable string, cfg *launch.Config) error {
	family, err := f.family()
	if err != nil || f.own {
		return err
	}
	folder, err := findFronts(executable)
	if family != needs.None {
		if err != nil {
			return fmt.Errorf("--%s: %w", family, err)
		}
		useFront(folder, family, cfg)
		return nil
	}
	programs := []string{cfg.Prog}
	for _, p := range cfg.Programs {
		programs = append(programs, p.Prog)
	}
	path := filepath.SplitList(lastLibraryPath(cfg))
	for _, prog := range programs {
		if prog == "" {
			continue
		}
		found, mixed := needs.Of(prog, path)
		if mixed != nil {
			return mixed
		}
		family = max(family, found)
	}
	if err == nil && family != needs.None { // else the program uses what it finds, or is refused
		useFront(folder, family, cfg)
	}
	return nil
}

const libraryPath = "LD_LIBRARY_PATH="

func lastLibraryPath(cfg *launch.Config) string {
	for _, env := range [][]string{cfg.ExtraEnv, cfg.Env} {
		if value := lastValue(env, libraryPath); value != "" {
			return value
		}
	}
	return ""
}

// useFront sets LD_LIBRARY_PATH of the ranks, on all hosts, to the folder of the libraries. A
// library path that the user has set follows: the program may need it for others.
func useFront(folder string, family needs.Family, cfg *launch.Config) {
	path := folder
	if value := lastLibraryPath(cfg); value != "" {
		path += string(os.PathListSeparator) + value
	}
	cfg.ExtraEnv = append(cfg.ExtraEnv, libraryPath+path)
	if family == needs.Unknown { // a script or an interpreter, which may load any
		return
	}
	cfg.ExitLeaves = true
	if !cfg.Output.Quiet {
		fmt.Fprintf(cfg.Output.Stderr, "muster: the ranks load %s\n", filepath.Join(folder, family.Library()))
	}
}

// lastValue returns the value of the last variable of env with a prefix such as "NAME=".
func lastValue(env []string, prefix string) (value string) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, prefix); ok {
			value = v
		}
	}
	return value
}

// findFronts returns the folder of the libraries: that of the executable, its folder cabi
// (make cabi), or ../lib/muster (installed).
func findFronts(executable string) (string, error) {
	if path, err := filepath.EvalSymlinks(executable); err == nil {
		executable = path
	}
	bin := filepath.Dir(executable)
	folders := []string{bin, filepath.Join(bin, "cabi"), filepath.Join(bin, "..", "lib", "muster")}
	for _, folder := range folders {
		if isFile(folder, mpichLibrary) && isFile(folder, needs.CoreLibrary) {
			return folder, nil
		}
	}
	return "", fmt.Errorf("%s and %s are in none of %s; build them in the source tree with: make cabi", mpichLibrary, needs.CoreLibrary, strings.Join(folders, ", "))
}

func isFile(folder, name string) bool {
	info, err := os.Stat(filepath.Join(folder, name))
	return err == nil && info.Mode().IsRegular()
}
