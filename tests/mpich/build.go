package main

// The suite: downloaded as a source package of Debian and built with mpicc.mpich.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// errUnavailable is the reason to skip the tests: a machine without a package archive runs the rest.
var errUnavailable = errors.New("no test suite")

// suite returns the wanted tests, whose programs are built if necessary, and those whose
// programs do not build. It sets o.tree. Tests in Fortran are absent without a compiler.
func (o *options) suite(ctx context.Context, wanted func(string) bool) (tests []*test, missing []string, err error) {
	given := o.tree != ""
	if !given {
		if err := o.configure(ctx); err != nil {
			return nil, nil, err
		}
	}
	for _, folder := range folders {
		all, err := readTests(o.tree, folder)
		if err != nil {
			return nil, nil, err
		}
		all = slices.DeleteFunc(all, func(t *test) bool { return !wanted(t.id) })
		tests = append(tests, everyNth(all, o.every)...)
	}
	if !given {
		if err := o.build(ctx, tests); err != nil {
			return nil, nil, err
		}
	}
	tests = slices.DeleteFunc(tests, func(t *test) bool {
		if !o.exists(t) {
			missing = append(missing, t.id)
			return true
		}
		return false
	})
	return tests, missing, nil
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
func (o *options) configure(ctx context.Context) error {
	if o.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("%w; use -cache", err)
		}
		o.cache = filepath.Join(dir, "muster", "mpich")
	}
	ready := filepath.Join(o.cache, "ready") // names the folder
	if name, err := os.ReadFile(ready); err == nil {
		o.tree = string(name)
		return nil
	}
	if _, err := exec.LookPath("mpicc.mpich"); err != nil {
		return fmt.Errorf("%w: mpicc.mpich is not installed (Debian package libmpich-dev)", errUnavailable)
	}
	if err := o.download(ctx); err != nil {
		return fmt.Errorf("%w: %w", errUnavailable, err)
	}
	archives, err := filepath.Glob(filepath.Join(o.cache, "mpich_*.orig.tar.*"))
	if err != nil || len(archives) == 0 {
		return fmt.Errorf("apt-get has left no archive in %s", o.cache)
	}
	if err := o.step(ctx, o.cache, "unpack", "tar", "xf", archives[len(archives)-1], "--wildcards", "mpich-*/test/mpi"); err != nil {
		return err
	}
	trees, err := filepath.Glob(filepath.Join(o.cache, "mpich-*", "test", "mpi"))
	if err != nil || len(trees) == 0 {
		return fmt.Errorf("the archive %s has no test/mpi", archives[len(archives)-1])
	}
	o.tree = trees[len(trees)-1]
	flags := []string{"--disable-cxx", "--enable-strictmpi", "--disable-ft-tests", "MPICC=mpicc.mpich", "CC=mpicc.mpich"}
	if _, err := exec.LookPath("gfortran"); err == nil {
		flags = append(flags, "MPIF77=mpif77.mpich", "MPIFC=mpif90.mpich", "F77=mpif77.mpich", "FC=mpif90.mpich")
	} else {
		flags = append(flags, "--disable-fortran")
	}
	if err := o.step(ctx, o.tree, "configure", "./configure", flags...); err != nil {
		return err
	}
	for _, library := range []string{"util", "dtpools"} {
		if err := o.step(ctx, o.tree, "make "+library, "make", "-j2", "-C", library); err != nil {
			return err
		}
	}
	return os.WriteFile(ready, []byte(o.tree), 0o644)
}

// download gets the source package, with lists and settings of apt in the cache folder: the
// machine need not have sources enabled.
func (o *options) download(ctx context.Context) error {
	sources := filepath.Join(o.cache, "sources.d")
	lists := filepath.Join(o.cache, "lists")
	for _, dir := range []string{sources, filepath.Join(lists, "partial")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := writeSources("/etc/apt", sources); err != nil {
		return err
	}
	settings := []string{
		"-o", "Dir::Etc::sourcelist=/dev/null", "-o", "Dir::Etc::sourceparts=" + sources,
		"-o", "Dir::State::lists=" + lists, "-o", "APT::Sandbox::User=root",
	}
	if err := o.step(ctx, o.cache, "apt-get update", "apt-get", append(settings, "update")...); err != nil {
		return err
	}
	return o.step(ctx, o.cache, "apt-get source", "apt-get", append(settings, "source", "--download-only", "mpich")...)
}

var (
	typesLine = regexp.MustCompile(`(?m)^Types:.*$`)
	debLine   = regexp.MustCompile(`(?m)^deb `)
)

// writeSources copies the archives that apt knows, as archives of source packages.
func writeSources(etc, folder string) error {
	files := []string{filepath.Join(etc, "sources.list")}
	for _, pattern := range []string{"*.list", "*.sources"} {
		more, err := filepath.Glob(filepath.Join(etc, "sources.list.d", pattern))
		if err != nil {
			return err
		}
		files = append(files, more...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		text = debLine.ReplaceAll(typesLine.ReplaceAll(text, []byte("Types: deb-src")), []byte("deb-src "))
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
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
		if err := o.step(ctx, o.tree, "make "+folder, "make", append([]string{"-k", "-j2", "-C", folder}, programs...)...); err != nil {
			fmt.Fprintf(os.Stderr, "%s: some programs do not build\n", folder)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// step runs a command of the preparation; its output is shown if it fails.
func (o *options) step(ctx context.Context, dir, what, name string, args ...string) error {
	began := time.Now()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return fmt.Errorf("%s: %w\n%s", what, err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	fmt.Fprintf(os.Stderr, "%s: %d s\n", what, int(time.Since(began).Seconds()))
	return nil
}
