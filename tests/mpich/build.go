package main

// The suite: downloaded as a source package of Debian and built with mpicc.mpich.

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/muster-mpi/muster/tests/judge"
)

// suite returns the wanted tests, whose programs are built if necessary, and those whose
// programs do not build. It sets o.tree. Tests in Fortran are absent without a compiler.
func (o *options) suite(ctx context.Context, cache string, wanted func(string) bool) (all []*judge.Test, missing []string, err error) {
	if o.every < 1 {
		return nil, nil, fmt.Errorf("-every %d: use 1 or more", o.every)
	}
	var tests []*test
	given := o.tree != ""
	if !given {
		if err := o.configure(ctx, cache); err != nil {
			return nil, nil, err
		}
	}
	for _, folder := range folders {
		some, err := readTests(o.tree, folder)
		if err != nil {
			return nil, nil, err
		}
		some = slices.DeleteFunc(some, func(t *test) bool { return !wanted(t.id) })
		tests = append(tests, everyNth(some, o.every)...)
	}
	if !given {
		if err := o.build(ctx, tests); err != nil {
			return nil, nil, err
		}
	}
	for _, t := range tests {
		if !o.exists(t) {
			missing = append(missing, t.id)
			continue
		}
		dir := filepath.Join(o.tree, t.folder)
		program := filepath.Join(dir, t.name)
		if filepath.Base(t.folder) == "io" { // tests write files of the same name, and run at the same time
			dir = filepath.Join(dir, "run", t.name)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, nil, err
			}
		}
		all = append(all, &judge.Test{
			ID: t.id, Dir: dir, Program: program, Args: t.args, Env: t.env,
			Ranks: t.ranks, Limit: t.limit, Passed: t.judge,
		})
	}
	return all, missing, nil
}

// everyNth returns the tests of every nth program.
func everyNth(tests []*test, n int) (some []*test) {
	number := map[string]int{}
	for _, t := range tests {
		program := t.folder + "/" + t.name
		if _, known := number[program]; !known {
			number[program] = len(number)
		}
		if number[program]%n == 0 {
			some = append(some, t)
		}
	}
	return some
}

func (o *options) exists(t *test) bool {
	info, err := os.Stat(filepath.Join(o.tree, t.folder, t.name))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// configure downloads the suite and configures it, unless an earlier run has.
func (o *options) configure(ctx context.Context, cache string) error {
	ready := filepath.Join(cache, "ready") // names the folder
	if name, err := os.ReadFile(ready); err == nil {
		o.tree = string(name)
		return nil
	}
	if o.openmpi {
		if _, err := exec.LookPath("mpicc.openmpi"); err != nil {
			return fmt.Errorf("%w: mpicc.openmpi is not installed (Debian package libopenmpi-dev)", judge.ErrUnavailable)
		}
	} else if _, err := exec.LookPath("mpicc.mpich"); err != nil {
		return fmt.Errorf("%w: mpicc.mpich is not installed (Debian package libmpich-dev)", judge.ErrUnavailable)
	}
	archive, err := judge.Source(ctx, cache, "mpich")
	if err != nil {
		return err
	}
	if err := judge.Step(ctx, cache, "unpack", "tar", "xf", archive, "--wildcards", "mpich-*/test/mpi"); err != nil {
		return err
	}
	trees, err := filepath.Glob(filepath.Join(cache, "mpich-*", "test", "mpi"))
	if err != nil || len(trees) == 0 {
		return fmt.Errorf("the archive %s has no test/mpi", archive)
	}
	o.tree = trees[len(trees)-1]
	mpi := "mpich"
	if o.openmpi {
		mpi = "openmpi"
	}
	flags := []string{"--disable-cxx", "--enable-strictmpi", "--disable-ft-tests", "MPICC=mpicc." + mpi, "CC=mpicc." + mpi}
	if _, err := exec.LookPath("gfortran"); err == nil {
		flags = append(flags, "MPIF77=mpif77."+mpi, "MPIFC=mpif90."+mpi, "F77=mpif77."+mpi, "FC=mpif90."+mpi)
	} else {
		flags = append(flags, "--disable-fortran")
	}
	if o.openmpi { // MPICH's compilers have the flag for Fortran; mpi.h hides functions of MPI-1
		flags = append(flags, "FFLAGS=-fallow-argument-mismatch", "FCFLAGS=-fallow-argument-mismatch", "CPPFLAGS=-DOMPI_OMIT_MPI1_COMPAT_DECLS=0")
	}
	if err := judge.Step(ctx, o.tree, "configure", "./configure", flags...); err != nil {
		return err
	}
	for _, library := range []string{"util", "dtpools"} {
		if err := judge.Step(ctx, o.tree, "make "+library, "make", "-j2", "-C", library); err != nil {
			return err
		}
	}
	return os.WriteFile(ready, []byte(o.tree), 0o644)
}

// build makes the programs of the tests that do not exist. Some do not compile with every
// MPICH; run reports them if they must pass.
func (o *options) build(ctx context.Context, tests []*test) error {
	missing := map[string][]string{}
	for _, t := range tests {
		if !o.exists(t) && !slices.Contains(missing[t.folder], t.name) {
			missing[t.folder] = append(missing[t.folder], t.name)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(missing)) {
		programs := missing[folder]
		if err := judge.Step(ctx, o.tree, "make "+folder, "make", append([]string{"-k", "-j2", "-C", folder}, programs...)...); err != nil {
			fmt.Fprintf(os.Stderr, "%s: some programs do not build\n", folder)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
