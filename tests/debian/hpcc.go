package main

// HPCC: Linpack, a transpose, random updates, Fourier transforms, and patterns of messages.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/muster-mpi/muster/tests/judge"
)

func hpccProgram(cache string) string { return filepath.Join(workFolder(cache, "hpcc"), "hpcc") }

// hpcc returns the test. The program writes its results to a file, which the rule removes so
// that the next run begins anew.
func hpcc(cache string) *judge.Test {
	dir := workFolder(cache, "hpcc")
	results := filepath.Join(dir, "hpccoutf.txt")
	return &judge.Test{
		ID: "hpcc/hpcc 4", Dir: dir, Program: hpccProgram(cache), Ranks: 4,
		Passed: func(status int, timeout bool, out string) (bool, string) {
			text, err := os.ReadFile(results)
			if err != nil && !os.IsNotExist(err) {
				return false, err.Error()
			}
			if err == nil {
				if err := os.Remove(results); err != nil {
					return false, err.Error()
				}
			}
			return hpccPassed(status, timeout, out+string(text))
		},
	}
}

// hpccParts are the lines by which each part reports right results.
var hpccParts = []struct{ name, line string }{
	{"HPL", `\|\|Ax-b\|\|.*PASSED`},
	{"PTRANS", `WALL.*PASSED`},
	{"RandomAccess", `Found 0 errors in \d+ locations \(passed\)`},
	{"FFT", `max\(\|x-x0\|\): +\d\.\d+e-(0[89]|1\d)`},
	{"all", `(?m)^Success=1`},
}

func hpccPassed(status int, timeout bool, out string) (bool, string) {
	if ok, why := passIfPrinted(`(?m)^Success=1`, `.*FAILED.*|.*\(failed\).*`)(status, timeout, out); !ok {
		return false, why
	}
	var absent []string
	for _, part := range hpccParts {
		if !regexp.MustCompile(part.line).MatchString(out) {
			absent = append(absent, part.name)
		}
	}
	return len(absent) == 0, "no result of " + strings.Join(absent, ", ")
}

// buildHPCC builds the program from its source package, unless an earlier run has.
func buildHPCC(ctx context.Context, cache, libraries string) error {
	program := hpccProgram(cache)
	if _, err := os.Stat(program); err == nil {
		return nil
	}
	if _, err := exec.LookPath("mpicc.mpich"); err != nil {
		return fmt.Errorf("%w: mpicc.mpich is not installed (Debian package libmpich-dev)", judge.ErrUnavailable)
	}
	archive, err := judge.Source(ctx, cache, "hpcc")
	if err != nil {
		return err
	}
	if err := judge.Step(ctx, cache, "unpack hpcc", "tar", "xf", archive); err != nil {
		return err
	}
	tree := one(cache, "hpcc-*")
	if err := os.WriteFile(filepath.Join(tree, "hpl", "Make.muster"), []byte(hpccMakefile(libraries)), 0o644); err != nil {
		return err
	}
	if err := judge.Step(ctx, tree, "make hpcc", "make", "-j2", "arch=muster"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return err
	}
	input, err := os.ReadFile(filepath.Join(tree, "_hpccinf.txt"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(program), "hpccinf.txt"), smallProblem(input), 0o644); err != nil {
		return err
	}
	return os.Rename(filepath.Join(tree, "hpcc"), program)
}

// linkHPCC makes the program of the binary package available, with its input.
func linkHPCC(cache, root string) error {
	program := hpccProgram(cache)
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return err
	}
	input, err := os.ReadFile(filepath.Join(root, "usr/share/doc/hpcc/examples/_hpccinf.txt"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(program), "hpccinf.txt"), smallProblem(input), 0o644); err != nil {
		return err
	}
	if err := os.Remove(program); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(filepath.Join(root, "usr/bin/hpcc"), program)
}

// smallProblem changes the size of the matrix of HPCC's example, from which all other sizes follow.
func smallProblem(input []byte) []byte {
	return regexp.MustCompile(`(?m)^\d+ +Ns$`).ReplaceAll(input, []byte("400 Ns"))
}

// hpccMakefile returns the settings of a build with the reference BLAS, by path, because its
// package for development need not be there.
func hpccMakefile(libraries string) string {
	return `SHELL = /bin/sh
CD = cd
CP = cp
LN_S = ln -s
MKDIR = mkdir
RM = /bin/rm -f
TOUCH = touch
ARCH = muster
TOPdir = ../../..
INCdir = $(TOPdir)/include
BINdir = $(TOPdir)/bin/$(ARCH)
LIBdir = $(TOPdir)/lib/$(ARCH)
HPLlib = $(LIBdir)/libhpl.a
HPL_INCLUDES = -I$(INCdir) -I$(INCdir)/$(ARCH)
HPL_LIBS = $(HPLlib) -L` + strings.ReplaceAll(libraries, ":", " -L") + ` -l:libblas.so.3 -lm -Wl,--allow-shlib-undefined
HPL_DEFS = -DAdd_ -DF77_INTEGER=int -DStringSunStyle $(HPL_INCLUDES)
CC = mpicc.mpich
CCNOOPT = $(HPL_DEFS)
CCFLAGS = $(HPL_DEFS) -O1
LINKER = $(CC)
LINKFLAGS = $(CCFLAGS)
ARCHIVER = ar
ARFLAGS = r
RANLIB = echo
`
}
