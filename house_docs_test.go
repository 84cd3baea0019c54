package muster_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// Pages name only what is in the tree: Go identifiers in backticks, files and folders of
// the repository, and anchors of other pages.
//
//   - `mpi.Isend`, `rdma.Attr.MaxPush`: a package of this module must declare it.
//   - `Config.Eager`: type Config of package mpi must have that field or method; a type that
//     mpi does not have may be of any package.
//   - `WaitAll`, `pollOnce`: a name in mixed case must occur in some Go file.
//   - `make lint`: the Makefile must have the target.
//   - `muster run --bind-to core`: a command of cmd/muster must declare the flag.
//   - internal/engine/wait.go, `docs/guide/*.md`: a path below a top-level folder must exist,
//     and so must a bare name such as `wait.go`, in any folder.

// historical are pages that name what the tree no longer has, and why. A decision with the
// status "superseded" is historical as well.
var historical = map[string]string{
	"CHANGELOG.md":  "names what was renamed and removed",
	decisionArchive: "names what the tree had when each decision was made",

	"tests/site/pages/from/mpi4py.md": "names calls of mpi4py",
	"tests/site/pages/from/mpijl.md":  "names calls of MPI.jl",
}

const generatedResults = "docs/results/" // records of the commit that each names

var (
	decisionSuperseded = regexp.MustCompile(`(?m)^Status: superseded`)
	treePath           = regexp.MustCompile(`(?:^|[^\w./-])(?:\./)?((?:mpi|mpitest|prof|internal|rdma|cmd|bench|docs|examples|tests)/[\w*][\w./*-]*)`)
	bareFile           = regexp.MustCompile(`(?:^|[\s(,])([\w*]+\.(?:go|md|lua|txt|svg))(?:$|[\s),;:])`)
	qualified          = regexp.MustCompile(`\b([a-z][a-z0-9]*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	typeMember         = regexp.MustCompile(`(?:^|[^\w.])([A-Z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	mixedCase          = regexp.MustCompile(`^\*?([A-Za-z][a-z0-9]*[A-Za-z0-9]*)(?:\[[^\]]*\])?(?:\(.*\))?$`)
	webAddress         = regexp.MustCompile(`(?:https?://|github\.com/)[^\s)>` + "`" + `]*`)
	inlineCode         = regexp.MustCompile("`([^`\n]+)`")
	musterCommand      = regexp.MustCompile(`(?:^|[ |;&])muster (.*)`)
	commandFlag        = regexp.MustCompile(`(?:^| )(--[a-z][a-z-]*)`)
	flagName           = regexp.MustCompile(`^"[a-z][a-z-]*"$`)
	flagMethod         = regexp.MustCompile(`^(?:Bool|String|Int|Duration|\w*Var)P?$`)
	makeTarget         = regexp.MustCompile(`^make ([a-z][\w-]*)`)
	targetRule         = regexp.MustCompile(`(?m)^([a-z][\w-]*):`)
	heading            = regexp.MustCompile(`^#{1,6} +(.*)$`)
	anchorID           = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	anchorLink         = regexp.MustCompile(`\]\(([^)\s#]*)#([^)\s]+)\)`)
)

func TestPagesNameWhatIsInTheTree(t *testing.T) {
	for _, fault := range checkPages(os.DirFS(".")) {
		t.Error(fault)
	}
}

func TestPageCheckFindsFaults(t *testing.T) {
	tree := fstest.MapFS{
		"mpi/p2p.go":  {Data: []byte("package mpi\n\ntype Config struct{ Eager string }\n\nfunc Isend() { pollOnce() }\n\nfunc (c *Config) Check() {}\n\nfunc pollOnce() {}\n")},
		"docs/b.md":   {Data: []byte("# Some words, and `code`\n\n<a id=\"mark\"></a>\n")},
		"Makefile":    {Data: []byte("lint: x\n\ttrue\n")},
		"docs/old.md": {Data: []byte("Status: superseded by 2\n\n`mpi.Gone`\n")},

		"cmd/muster/run.go": {Data: []byte("package main\n\nfunc run() { f.StringVar(&x, \"bind-to\", \"\", \"\"); f.IntVarP(&n, \"ranks\", \"n\", 0, \"\") }\n\nvar table = []row{{&q, \"quiet\", \"q\", \"\"}}\n")},
	}
	for text, want := range map[string]string{
		"`mpi.Isend`, `Config.Eager`, `mpi.Config.Check`, `pollOnce`, `sync.Mutex`, `SIGKILL`": "",
		"mpi/p2p.go, `mpi/*.go`, `p2p.go`, `./mpi/...`, `docs/b.md`":                           "",
		"[b](b.md#some-words-and-code), [b](b.md#mark)":                                        "",
		"an https://example.org/internal/engine address":                                       "",
		"`muster run --quiet -n 2 ./prog`":                                                     "",
		"`mpi.Irecv`":                                                                          "docs/a.md:1: `mpi.Irecv`: package mpi declares no Irecv",
		"x\n`mpi.Config.Lazy`":                                                                 "docs/a.md:2: `mpi.Config.Lazy`: mpi.Config has no field or method Lazy",
		"`Config.Lazy`":                                                                        "docs/a.md:1: `Config.Lazy`: no type Config has a field or method Lazy",
		"`Gadget.Lazy`":                                                                        "docs/a.md:1: `Gadget.Lazy`: no type Gadget has a field or method Lazy",
		"`pollTwice`":                                                                          "docs/a.md:1: `pollTwice`: no Go file has this name",
		"see mpi/gone.go.":                                                                     "docs/a.md:1: mpi/gone.go: not in the tree",
		"`make lint`":                                                                          "",
		"`muster run --bind-to core --ranks 2 ./prog`":                                         "",
		"`muster run --bind core ./prog`":                                                      "docs/a.md:1: muster run --bind core ./prog: no command has the flag --bind",
		"```\n$ FOO=1 muster run --bind core ./prog\n```":                                      "docs/a.md:2: muster run --bind core ./prog: no command has the flag --bind",
		"`make gone`":                                                                          "docs/a.md:1: `make gone`: the Makefile has no such target",
		"`gone.go`":                                                                            "docs/a.md:1: gone.go: no folder has this file",
		"```\nmpi/gone.go\n```":                                                                "docs/a.md:2: mpi/gone.go: not in the tree",
		"```go\nmpi.Gone(x)\n```":                                                              "docs/a.md:2: `mpi.Gone`: package mpi declares no Gone",
		"| old | new |\n| --- | --- |\n| `mpi.Gone` | `mpi.Lost` |":                            "docs/a.md:3: `mpi.Lost`: package mpi declares no Lost",
		"[b](b.md#other)":                                                                      "docs/a.md:1: link to b.md#other: docs/b.md has no such heading",
		"## A\n\n### B\n\n## C\n\n### B\n\n## A":                                               "docs/a.md:9: section \"A\" is in line 1 too: make one of them",
		"# A\n\n[a](#a) [a](#no)":                                                              "docs/a.md:3: link to #no: docs/a.md has no such heading",
	} {
		tree["docs/a.md"] = &fstest.MapFile{Data: []byte(text)}
		if got := strings.Join(checkPages(tree), "; "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// declared is what the Go files of the tree declare.
type declared struct {
	packages map[string]map[string]bool            // package name: its top-level names
	members  map[string]map[string]map[string]bool // package name: type: its fields and methods
	used     map[string]bool                       // every identifier of every file
	files    map[string]bool                       // base names of all files
	paths    fs.FS
	anchors  map[string]map[string]bool // page: its anchors
	targets  map[string]bool            // of the Makefile
	flags    map[string]bool            // of muster's commands
}

// otherFlags are flags of programs that muster runs, or that a command parses itself.
var otherFlags = map[string]string{"--args": "gdb", "--overlap": "srun", "--cxx": "muster cc", "--fortran": "muster cc", "--show": "muster cc"}

// checkPages returns the names in pages that the tree does not have.
func checkPages(tree fs.FS) (faults []string) {
	d := &declared{
		packages: map[string]map[string]bool{}, members: map[string]map[string]map[string]bool{},
		used: map[string]bool{}, files: map[string]bool{}, paths: tree, anchors: map[string]map[string]bool{}, targets: map[string]bool{}, flags: map[string]bool{"--help": true},
	}
	if text, err := fs.ReadFile(tree, "Makefile"); err == nil {
		for _, m := range targetRule.FindAllStringSubmatch(string(text), -1) {
			d.targets[m[1]] = true
		}
	}
	pages := map[string]string{}
	err := fs.WalkDir(tree, ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (p != "." && strings.HasPrefix(e.Name(), ".") || p == "bin"):
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		d.files[e.Name()] = true
		if ext := path.Ext(p); ext != ".go" && ext != ".md" {
			return nil
		}
		text, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		if path.Ext(p) == ".md" {
			pages[p], d.anchors[p] = string(text), anchorsOf(string(text))
			return nil
		}
		return d.addFile(p, text)
	})
	if err != nil {
		return []string{err.Error()}
	}
	for page, text := range pages {
		faults = append(faults, d.checkPage(page, text)...)
	}
	slices.Sort(faults)
	return faults
}

func (d *declared) addFile(p string, text []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), p, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	pkg := strings.TrimSuffix(file.Name.Name, "_test")
	if d.packages[pkg] == nil {
		d.packages[pkg], d.members[pkg] = map[string]bool{}, map[string]map[string]bool{}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				d.packages[pkg][decl.Name.Name] = true
			} else {
				d.addMember(pkg, typeName(decl.Recv.List[0].Type), decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						d.packages[pkg][n.Name] = true
					}
				case *ast.TypeSpec:
					d.packages[pkg][spec.Name.Name] = true
					d.addType(pkg, spec)
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			d.used[n.Name] = true
		case *ast.CallExpr:
			if strings.HasPrefix(p, "cmd/muster/") {
				d.addFlag(n)
			}
		case *ast.CompositeLit:
			if strings.HasPrefix(p, "cmd/muster/") {
				d.addFlagRow(n)
			}
		}
		return true
	})
	return nil
}

// addFlag adds the flag that a call declares: flags.BoolVar(&x, "name", ...), or its variants.
func (d *declared) addFlag(call *ast.CallExpr) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) < 3 || !flagMethod.MatchString(sel.Sel.Name) {
		return
	}
	d.addFlagName(call.Args[0])
	d.addFlagName(call.Args[1])
}

// addFlagRow adds the flag of a row of a table: {&x, "name", "", "help"}.
func (d *declared) addFlagRow(row *ast.CompositeLit) {
	if len(row.Elts) == 4 {
		if to, ok := row.Elts[0].(*ast.UnaryExpr); ok && to.Op == token.AND {
			d.addFlagName(row.Elts[1])
		}
	}
}

func (d *declared) addFlagName(x ast.Expr) {
	if lit, ok := x.(*ast.BasicLit); ok && flagName.MatchString(lit.Value) {
		d.flags["--"+strings.Trim(lit.Value, `"`)] = true
	}
}

func (d *declared) addType(pkg string, spec *ast.TypeSpec) {
	var fields *ast.FieldList
	switch t := spec.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		d.addMember(pkg, spec.Name.Name, "")
		return
	}
	d.addMember(pkg, spec.Name.Name, "")
	for _, f := range fields.List {
		for _, n := range f.Names {
			d.addMember(pkg, spec.Name.Name, n.Name)
		}
		if len(f.Names) == 0 {
			d.addMember(pkg, spec.Name.Name, typeName(f.Type)) // embedded
		}
	}
}

func (d *declared) addMember(pkg, typ, member string) {
	if d.members[pkg][typ] == nil {
		d.members[pkg][typ] = map[string]bool{}
	}
	d.members[pkg][typ][member] = true
}

// typeName is the name of a receiver's or an embedded field's type.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func (d *declared) checkPage(page, text string) (faults []string) {
	names := historical[page] == "" && !strings.HasPrefix(page, generatedResults) && !decisionSuperseded.MatchString(text)
	fence, inFence, renames := "", false, false
	sections := map[string]int{} // the line of each
	for i, line := range strings.Split(text, "\n") {
		renames = strings.HasPrefix(line, "| old |") || renames && strings.HasPrefix(line, "|")
		if renames { // the first column of such a table names what is gone
			_, line, _ = strings.Cut(strings.TrimPrefix(line, "|"), "|")
		}
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Sprintf("%s:%d: ", page, i+1)+fmt.Sprintf(format, args...))
		}
		if after, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
			fence, inFence = after, !inFence
			continue
		}
		if names {
			d.checkPaths(line, inFence, fault)
			if inFence && fence == "go" {
				d.checkQualified(line, fault)
			} else if inFence {
				d.checkFlags(page, line, fault)
			}
		}
		if inFence {
			continue
		}
		if title, ok := strings.CutPrefix(line, "## "); ok {
			if first := sections[title]; first > 0 {
				fault("section %q is in line %d too: make one of them", title, first)
			}
			sections[title] = i + 1
		}
		if names {
			for _, m := range inlineCode.FindAllStringSubmatch(line, -1) {
				d.checkCode(m[1], fault)
				d.checkFlags(page, m[1], fault)
			}
		}
		for _, m := range anchorLink.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, "code"), -1) {
			to := page
			if m[1] != "" {
				to = path.Join(path.Dir(page), m[1])
			}
			if anchors, ok := d.anchors[to]; ok && !anchors[m[2]] {
				fault("link to %s#%s: %s has no such heading", m[1], m[2], to)
			}
		}
	}
	return faults
}

type faultFunc func(format string, args ...any)

func (d *declared) checkPaths(line string, inFence bool, fault faultFunc) {
	line = webAddress.ReplaceAllString(line, "address")
	for _, m := range treePath.FindAllStringSubmatch(line, -1) {
		p := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(m[1], "."), "/"), ".")
		if found, err := fs.Glob(d.paths, p); err != nil || len(found) == 0 {
			fault("%s: not in the tree", p)
		}
	}
	if inFence {
		return
	}
	for _, m := range inlineCode.FindAllStringSubmatch(line, -1) {
		for _, f := range bareFile.FindAllStringSubmatch(m[1], -1) {
			if name := f[1]; !strings.HasPrefix(m[1], "muster ") && !d.hasFile(name) {
				fault("%s: no folder has this file", name)
			}
		}
	}
}

// hasFile reports whether a folder has a file of this name. A name that begins with an
// underscore is an ending: `_linux.go`.
func (d *declared) hasFile(pattern string) bool {
	if pattern[0] == '_' {
		pattern = "*" + pattern
	}
	if !strings.Contains(pattern, "*") {
		return d.files[pattern]
	}
	for name := range d.files {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

// checkCode checks the Go identifiers of one code span.
func (d *declared) checkCode(code string, fault faultFunc) {
	d.checkQualified(code, fault)
	if m := makeTarget.FindStringSubmatch(code); m != nil && !d.targets[m[1]] {
		fault("`make %s`: the Makefile has no such target", m[1])
	}
	for _, m := range typeMember.FindAllStringSubmatch(code, -1) {
		d.checkMember(m[1], m[2], fault)
		if m[3] != "" {
			d.checkMember(m[2], m[3], fault)
		}
	}
	if m := mixedCase.FindStringSubmatch(code); m != nil && isMixed(m[1]) && !d.used[m[1]] {
		fault("`%s`: no Go file has this name", m[1])
	}
}

// checkFlags checks the flags of a command line of muster.
func (d *declared) checkFlags(page, line string, fault faultFunc) {
	m := musterCommand.FindStringSubmatch(line)
	if m == nil || strings.HasPrefix(page, "docs/decisions/") { // they name what was not done, too
		return
	}
	for _, f := range commandFlag.FindAllStringSubmatch(m[1], -1) {
		if !d.flags[f[1]] && otherFlags[f[1]] == "" {
			fault("muster %s: no command has the flag %s", m[1], f[1])
		}
	}
}

// checkMember checks a type without its package: that of package mpi, or if it has none, any.
func (d *declared) checkMember(typ, member string, fault faultFunc) {
	ok := d.members["mpi"][typ][member]
	if d.members["mpi"][typ] == nil {
		for pkg := range d.members {
			ok = ok || d.members[pkg][typ][member]
		}
	}
	if !ok {
		fault("`%s.%s`: no type %s has a field or method %s", typ, member, typ, member)
	}
}

func (d *declared) checkQualified(code string, fault faultFunc) {
	for _, m := range qualified.FindAllStringSubmatch(code, -1) {
		pkg, name, member := m[1], m[2], m[3]
		names, ours := d.packages[pkg]
		switch {
		case !ours:
		case !names[name]:
			fault("`%s.%s`: package %s declares no %s", pkg, name, pkg, name)
		case member != "" && !d.members[pkg][name][member]:
			fault("`%s.%s.%s`: %s.%s has no field or method %s", pkg, name, member, pkg, name, member)
		}
	}
}

// isMixed reports whether a word has an upper-case letter behind its first one and a
// lower-case letter: the form of a Go identifier and of no plain word.
func isMixed(word string) bool {
	return strings.IndexFunc(word[1:], unicode.IsUpper) >= 0 && strings.IndexFunc(word, unicode.IsLower) >= 0
}

// anchorsOf returns what links can point to in a page: its headings, as GitHub makes
// anchors of them, and explicit anchors.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	inFence := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inFence = !inFence
		}
		if m := heading.FindStringSubmatch(line); m != nil && !inFence {
			anchors[slug(m[1])] = true
		}
		for _, m := range anchorID.FindAllStringSubmatch(line, -1) {
			anchors[m[1]] = true
		}
	}
	return anchors
}

func slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(title)) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}
