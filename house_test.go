package muster_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// The house rules, which apply to every folder. This file walks the tree and checks the
// rules about files; house_imports_test.go has the import policy, house_state_test.go the
// rule about package-level state, house_shape_test.go those about sizes and names,
// house_words_test.go the vocabulary, and house_references_test.go citations and links.
// CONTRIBUTING.md explains the rules. A rule is changed only by a decision in
// docs/decisions, never to make a build pass.

func TestHouse(t *testing.T) {
	for _, fault := range inspect(os.DirFS(".")) {
		t.Error(fault)
	}
}

const (
	module   = "github.com/muster-mpi/muster"
	maxLines = 600 // limit for a file other than a test: enough for one concern
)

// house is the parsed tree.
type house struct {
	fset    *token.FileSet
	folders map[string][]*source // by path from the root
	faults  []string
}

// source is one Go file.
type source struct {
	path   string
	folder string
	file   *ast.File
	test   bool
	lines  int
}

func (s *source) name() string { return path.Base(s.path) }

// inspect returns the violations of the rules, sorted by file.
func inspect(tree fs.FS) []string {
	h := &house{fset: token.NewFileSet(), folders: map[string][]*source{}}
	h.walk(tree)
	for folder, files := range h.folders {
		h.checkFolder(folder, files)
		h.checkImports(folder, files)
		h.checkState(folder, files)
		h.checkShape(files)
	}
	slices.Sort(h.faults)
	return h.faults
}

func (h *house) fault(where, format string, args ...any) {
	h.faults = append(h.faults, where+": "+fmt.Sprintf(format, args...))
}

// at returns the file and line of a node.
func (h *house) at(n ast.Node) string {
	p := h.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// walk reads every file except build output.
func (h *house) walk(tree fs.FS) {
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == "bin" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || p == ".git" { // .git is a file in a linked worktree
			return nil
		}
		text, err := fs.ReadFile(tree, p)
		if os.IsNotExist(err) {
			return nil // a temporary file that was just removed
		}
		if err != nil {
			return err
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return nil // not text
		}
		h.checkText(p, text)
		if strings.HasSuffix(p, ".go") && !strings.Contains(p, "testdata/") {
			h.parse(p, text)
		}
		return nil
	})
	if err != nil {
		h.fault(".", "the tree cannot be read: %v", err)
	}
}

func (h *house) parse(p string, text []byte) {
	file, err := parser.ParseFile(h.fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		h.fault(p, "does not parse: %v", err)
		return
	}
	folder := path.Dir(p)
	h.folders[folder] = append(h.folders[folder], &source{
		path: p, folder: folder, file: file,
		test: strings.HasSuffix(p, "_test.go"), lines: bytes.Count(text, []byte("\n")),
	})
}

// checkText finds paths of a particular machine. The paths are concatenated here, so that
// this file does not contain them.
func (h *house) checkText(p string, text []byte) {
	for _, word := range []string{"/" + "work/", "/" + "root/", "/" + "home/", ".." + "/shared"} {
		if i := bytes.Index(text, []byte(word)); i >= 0 {
			h.fault(fmt.Sprintf("%s:%d", p, 1+bytes.Count(text[:i], []byte("\n"))), "contains a path of one machine (%s…)", word)
		}
	}
}

// checkFolder checks the rules about single files and their folder.
func (h *house) checkFolder(folder string, files []*source) {
	if slices.Contains([]string{"util", "utils", "common", "base", "types", "misc", "helper", "helpers"}, path.Base(folder)) {
		h.fault(folder, "meaningless name: name the folder after its subject")
	}
	documented, code := false, false
	for _, s := range files {
		if !s.test {
			code = true
			documented = documented || s.file.Doc != nil && s.isFront()
			if s.lines > maxLines && !ast.IsGenerated(s.file) {
				h.fault(s.path, "has %d lines, the limit is %d: split it by concern", s.lines, maxLines)
			}
		}
		h.checkUnsafe(s)
		h.checkInit(s)
	}
	if code && !documented {
		h.fault(folder, "has no doc.go with a package comment")
	}
}

// isFront reports whether the file is the entry point for readers: doc.go, or main.go of a
// program.
func (s *source) isFront() bool {
	return s.name() == "doc.go" || s.name() == "main.go" && s.file.Name.Name == "main"
}

// checkUnsafe checks that code beyond the compiler's checks is in files named for it.
func (h *house) checkUnsafe(s *source) {
	if strings.HasSuffix(s.path, "_unsafe.go") || strings.HasSuffix(s.path, "_unsafe_test.go") {
		return
	}
	for _, imp := range s.file.Imports {
		if imp.Path.Value == `"unsafe"` {
			h.fault(h.at(imp), "imports unsafe: only files named *_unsafe.go may")
		}
	}
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:linkname") {
				h.fault(h.at(c), "uses go:linkname: only files named *_unsafe.go may")
			}
		}
	}
}

// checkInit checks that importing a package has no effects.
func (h *house) checkInit(s *source) {
	for _, decl := range s.file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" && !s.test {
			h.fault(h.at(fn), "has an init function: use an explicit call instead")
		}
	}
}
