package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// changedFiles returns the paths of files that differ from a commit, from the root of the tree.
func changedFiles(ctx context.Context, base string) ([]string, error) {
	if base == "" {
		base = "HEAD"
		for _, main := range []string{"main", "origin/main"} {
			if at, err := output(ctx, "git", "merge-base", main, "HEAD"); err == nil {
				base = strings.TrimSpace(at)
				break
			}
		}
	}
	differ, err := output(ctx, "git", "diff", "--name-only", "--no-renames", base)
	if err != nil {
		return nil, err
	}
	untracked, err := output(ctx, "git", "ls-files", "--others", "--exclude-standard")
	return strings.Fields(differ + untracked), err
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return string(out), err
}

// pkg is what go list prints of a package.
type pkg struct {
	ImportPath                         string
	Module                             struct{ Path string }
	Imports, TestImports, XTestImports []string
}

// folder is the path from the root of the tree, "." for the root itself.
func (p *pkg) folder() string {
	return path.Clean("./" + strings.TrimPrefix(p.ImportPath, p.Module.Path))
}

func packages(ctx context.Context) (list []*pkg, err error) {
	text, err := output(ctx, "go", "list", "-json=ImportPath,Module,Imports,TestImports,XTestImports", "./...")
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		p := new(pkg)
		if err := d.Decode(p); err == io.EOF {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

// slow are folders whose short tests take longer than others; they are tested last.
var slow = []string{"mpi", "cmd/muster", "cabi", "bench/peers", "internal/launch"}

// findAffected returns the packages that files belong to, those of the root aside, and the others
// that import them, in tests or not, as arguments of go test. A change of go.mod affects all.
func findAffected(list []*pkg, files []string) (changed, importers []string) {
	byFolder := map[string]*pkg{}
	for _, p := range list {
		byFolder[p.folder()] = p
	}
	touched := map[string]bool{}
	for _, f := range files {
		for folder := path.Dir(f); folder != "."; folder = path.Dir(folder) {
			if p := byFolder[folder]; p != nil { // f may be in its testdata
				touched[p.ImportPath] = true
				break
			}
		}
	}
	all := slices.Contains(files, "go.mod")
	var last []string
	for _, p := range list {
		folder := p.folder()
		imports := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
		switch arg := "./" + folder; {
		case folder == ".":
		case touched[p.ImportPath]:
			changed = append(changed, arg)
		case !all && !slices.ContainsFunc(imports, func(name string) bool { return touched[name] }):
		case slices.Contains(slow, folder):
			last = append(last, arg)
		default:
			importers = append(importers, arg)
		}
	}
	return changed, append(importers, last...)
}
