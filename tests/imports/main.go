// Command imports checks that Muster's libraries for C programs define and implement what the programs
// of Debian import: the packages that depend on Open MPI's or MPICH's library. It downloads the
// packages one after another, which is some gigabytes, reads the symbol tables of their programs
// and libraries, and keeps only the list of imports of each.
//
//	make test-imports
//	make test-imports IMPORTS='-only ^petsc -page docs/results-imports.md'
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/cabi/core"
	"github.com/muster-mpi/muster/tests/judge"
)

// family is an MPI of Debian.
type family struct {
	name     string
	packages []string // names of its library's package, of which a release of Debian has one
	ours     string   // library
	others   []string // patterns of its libraries that work on ours: for Fortran and C++, and what they need
}

var families = []family{
	{"Open MPI", []string{"libopenmpi40", "libopenmpi3t64", "libopenmpi3"}, "libmpi.so.40",
		[]string{"/usr/lib/*/libmpi_mpifh.so.40", "/usr/lib/*/libmpi_usempif08.so.40", "/usr/lib/*/libmpi_usempi_ignore_tkr.so.40", "/usr/lib/*/libmpi_cxx.so.40", "/usr/lib/*/libopen-pal.so.40"}},
	{"MPICH", []string{"libmpich12t64", "libmpich12"}, "libmpich.so.12",
		[]string{"/usr/lib/*/libmpichfort.so.12", "/usr/lib/*/libmpichcxx.so.12"}},
}

// ofMPI are the packages of the MPIs themselves.
var ofMPI = regexp.MustCompile(`^(lib)?(openmpi|mpich)`)

type options struct {
	bin, cache, page string
	only             *regexp.Regexp
}

func main() {
	var o options
	only := ""
	flag.StringVar(&o.bin, "bin", "bin", "folder of muster, with the libraries in its folder cabi")
	flag.StringVar(&o.cache, "cache", "", "folder for the lists of imports (default: muster/imports in the user's cache folder)")
	flag.StringVar(&only, "only", "", "check only packages whose name matches this regular expression")
	flag.StringVar(&o.page, "page", "", "write this page of results")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if o.only, err = regexp.Compile(only); err == nil {
		err = o.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "imports:", err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context) (err error) {
	if o.cache == "" {
		if o.cache, err = judge.Folder("imports"); err != nil {
			return err
		}
	}
	var results []*result
	for _, f := range families {
		r, err := o.check(ctx, f)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	text := report(results)
	fmt.Print(text)
	if o.page != "" {
		if err := writePage(o.page, text); err != nil {
			return err
		}
	}
	for _, r := range results {
		if len(r.unresolved) > 0 {
			return fmt.Errorf("%s does not resolve all imports", r.ours)
		}
	}
	return nil
}

// check compares the imports of all packages of a family with our library.
func (o *options) check(ctx context.Context, f family) (*result, error) {
	ours, err := definitions(filepath.Join(o.bin, "cabi", f.ours))
	if err != nil {
		return nil, err
	}
	r := &result{family: f, unresolved: map[string][]string{}}
	implemented, err := implementedFunctions()
	if err != nil {
		return nil, err
	}
	state := newState(ours, implemented)
	for _, pattern := range f.others {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("%s is not installed: needs libopenmpi-dev and libmpich-dev", pattern)
		}
		names, err := definitions(found[0])
		if err != nil {
			return nil, err
		}
		state.add(names)
		r.libraries = append(r.libraries, found[0])
	}
	for _, path := range r.libraries {
		imports, err := importsOf(path)
		if err != nil {
			return nil, err
		}
		r.count(filepath.Base(path), imports, state)
	}
	r.packages = 0
	names, err := o.dependents(ctx, f)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		imports, err := o.imports(ctx, name)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			r.absent = append(r.absent, name)
			continue
		}
		if i%20 == 19 {
			fmt.Fprintf(os.Stderr, "%d of %d packages\n", i+1, len(names))
		}
		r.count(name, imports, state)
	}
	return r, nil
}

// frontLine is a function of cabi/functions.txt that is in C.
var frontLine = regexp.MustCompile(`(?m)^front (\w+)`)

// implementedFunctions returns the functions of the core and of the front, and whether they are
// implemented.
func implementedFunctions() (map[string]bool, error) {
	table, err := os.ReadFile("cabi/functions.txt")
	if err != nil {
		return nil, fmt.Errorf("start this in the root of the source tree: %w", err)
	}
	functions := core.ImplementedFunctions()
	for _, m := range frontLine.FindAllSubmatch(table, -1) {
		functions[string(m[1])] = true
	}
	return functions, nil
}

// dependents returns the packages that depend on the library of a family.
func (o *options) dependents(ctx context.Context, f family) ([]string, error) {
	for _, library := range f.packages {
		names, err := judge.Dependents(ctx, o.cache, library)
		if err != nil {
			return nil, err
		}
		names = slices.DeleteFunc(names, func(n string) bool { return ofMPI.MatchString(n) || !o.only.MatchString(n) })
		if len(names) > 0 {
			return names, nil
		}
	}
	return nil, fmt.Errorf("no package depends on one of %s", strings.Join(f.packages, ", "))
}

// imports returns the symbols of MPI that the programs and libraries of a package import. It reads
// the list of an earlier run if there is one.
func (o *options) imports(ctx context.Context, name string) ([]string, error) {
	list := filepath.Join(o.cache, name+".txt")
	if text, err := os.ReadFile(list); err == nil {
		return strings.Fields(string(text)), nil
	}
	dir := filepath.Join(o.cache, "package")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	root, err := judge.Packages(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	imports, err := importsBelow(root)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(list, []byte(strings.Join(imports, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	return imports, os.RemoveAll(dir)
}
