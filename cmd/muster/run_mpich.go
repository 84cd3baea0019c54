package main

// muster run --mpich: the ranks load Muster's libmpich.so.12 (package cabi), so that C and
// Fortran programs built for MPICH run on Muster.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-mpi/muster/internal/launch"
)

// mpichLibrary is the name by which programs built with Debian's MPICH load their library,
// and coreLibrary the part of ours that it loads in MPI_Init.
const (
	mpichLibrary = "libmpich.so.12"
	coreLibrary  = "libmuster_core.so"
)

// useMPICH sets LD_LIBRARY_PATH of the ranks, on all hosts, to the folder of the library.
// A library path that the user has set follows: the program may need it for others.
func useMPICH(executable string, cfg *launch.Config) error {
	folder, err := findMPICH(executable)
	if err != nil {
		return err
	}
	const variable = "LD_LIBRARY_PATH="
	path := folder
	for _, env := range [][]string{cfg.ExtraEnv, cfg.Env} {
		if value := lastValue(env, variable); value != "" {
			path += string(os.PathListSeparator) + value
			break
		}
	}
	cfg.ExtraEnv = append(cfg.ExtraEnv, variable+path)
	cfg.ExitLeaves = true
	if !cfg.Output.Quiet {
		fmt.Fprintf(cfg.Output.Stderr, "muster: the ranks load %s\n", filepath.Join(folder, mpichLibrary))
	}
	return nil
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

// findMPICH returns the folder of the library: that of the executable, its folder cabi
// (make cabi), or ../lib/muster (installed).
func findMPICH(executable string) (string, error) {
	if path, err := filepath.EvalSymlinks(executable); err == nil {
		executable = path
	}
	bin := filepath.Dir(executable)
	folders := []string{bin, filepath.Join(bin, "cabi"), filepath.Join(bin, "..", "lib", "muster")}
	for _, folder := range folders {
		if isFile(folder, mpichLibrary) && isFile(folder, coreLibrary) {
			return folder, nil
		}
	}
	return "", fmt.Errorf("--mpich: %s and %s are in none of %s; build them in the source tree with: make cabi", mpichLibrary, coreLibrary, strings.Join(folders, ", "))
}

func isFile(folder, name string) bool {
	info, err := os.Stat(filepath.Join(folder, name))
	return err == nil && info.Mode().IsRegular()
}
