package muster_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// How many files must a contributor touch to add something? Each row of additions adds one
// thing, as "Add a ..." of CONTRIBUTING.md describes it. The test applies all rows to a copy
// of the files that they touch, builds muster from the tree with these files in place of
// the originals (go build -overlay), and each row then checks that the commands and pages
// show the new thing. Generated pages and tests do not count: a test prints how to write
// the former, and reviewers ask for the latter.

// addition is a row.
type addition struct {
	what  string // the section of CONTRIBUTING.md, which must name every touched file
	most  int    // files that may be touched
	edits []edit
	check func(t *testing.T, c *changedTree)
}

// edit inserts text after the only line of a file that is after, or else begins with it, white
// space aside. Without after, the file is new.
type edit struct{ file, after, text string }

var additions = []addition{
	{
		what: "Add a setting", most: 2,
		edits: []edit{
			{"mpi/config.go", "type Advanced struct {", `
	// Sample is how many of a hundred calls are sampled.
	Sample int ` + "`" + `env:"MUSTER_SAMPLE" default:"7" range:"2..99"` + "`" + `
	// Flavor is "plain" (as it is) or "fancy" (more colorful).
	Flavor string ` + "`" + `env:"MUSTER_FLAVOR" default:"plain" choices:"plain,fancy"` + "`" + `
`},
			{"mpi/version.go", "const protocol =", `
func (c *Config) sampled(call int) bool { return call%100 < c.Advanced.Sample }
`},
		},
		check: func(t *testing.T, c *changedTree) {
			c.shows(t, nil, `MUSTER_SAMPLE +7 +default +7`, "info")
			c.shows(t, []string{"MUSTER_SAMPLE=9"}, `MUSTER_SAMPLE +9 +environment +7`, "info")
			c.shows(t, []string{"MUSTER_SAMPLE=1"}, `Config.Advanced.Sample \(MUSTER_SAMPLE\) is 1; want 2 to 99, or 0 for the default: 7`, "info")
			c.shows(t, []string{"MUSTER_FLAVOR=fanzy"}, `MUSTER_FLAVOR\) is "fanzy"; want plain or fancy; did you mean fancy`, "info")
			table, err := settingsTable(c)
			if want := "|`MUSTER_SAMPLE`|`Config.Advanced.Sample`|7|2 to 99|Sample is how many of a hundred"; err != nil || !strings.Contains(table, want) {
				t.Errorf("%s would not have %q (%v)", settingsPage, want, err)
			}
		},
	},
	{
		what: "Add a protocol", most: 2,
		edits: []edit{
			{"internal/p2p/protocol.go", "protoSpec", "\tprotoSample\n"},
			{"internal/p2p/protocol.go", "protoSpec:", `	protoSample: {rndvSample{}, "rndv_sample", "sample", rdma.OpRead},
`},
			{"internal/p2p/rndv_sample.go", "", `package p2p

// rndvSample is rndv_get by another name.
type rndvSample struct{ rndvGet }

func (rndvSample) Begin(m *Machine, x *Xfer) { m.emitRTS(x, protoSample, x.mr.Base, x.mr.RKey) }
`},
		},
		check: func(t *testing.T, c *changedTree) {
			c.shows(t, []string{"MUSTER_RENDEZVOUS=sampel"}, `want get, put, coop or sample; did you mean sample`, "info")
			c.shows(t, nil, `--protocol .*: get, put, coop, sample, off`, "bench", "rndv-overhead", "--help")
			c.shows(t, []string{"MUSTER_RENDEZVOUS=sample"}, `any  rndv_sample`, "explain")
		},
	},
	{
		what: "Add a collective algorithm", most: 1,
		edits: []edit{{"internal/coll/barrier.go", "return []Algorithm{", `
		{
			Kind: Barrier, Name: "tree-8", Ref: "Mellor-Crummey, Scott 1991",
			About: "The tree with eight children a rank.",
			Cost:  func(s *Shape, m *Model, _ []int) float64 { return m.atLeast(2 * knomialCost(s.Size, m, 8, 0)) },
			Build: func(b *sched.Builder, s *Shape, _ []int) { treeBarrier(b, s, []int{8}) },
		},
`}},
		check: func(t *testing.T, c *changedTree) {
			c.shows(t, nil, `tree-8`, "sched", "barrier", "--ranks", "9")
		},
	},
	{
		what: "Add a collective kind", most: 3,
		edits: []edit{
			{"internal/coll/kinds.go", "Neighbors                 // In: a block", "\tRotate // In: the data; Out: the data of the rank before\n"},
			{"internal/coll/kinds.go", "Finalize: {name:", `
	Rotate: {name: "rotate", functions: names("Rotate"), in: Vector, out: Vector, segment: -1, sharedCores: -1, define: (*meaning).rotate},
`},
			{"internal/coll/kinds.go", "neighborsAlgorithms(), papAlgorithms(), papReduceAlgorithms(),", "\trotateAlgorithms(),\n"},
			{"internal/coll/rotate.go", "", `package coll

import "github.com/muster-mpi/muster/internal/sched"

// rotate defines that a rank gets the data of the rank before it.
func (m *meaning) rotate() {
	before := (m.s.Rank + m.s.Size - 1) % m.s.Size
	m.start(m.input(), 0, m.s.Bytes, 0)
	m.end(0, m.s.Bytes, before, before+1, 0)
}

func rotateAlgorithms() []Algorithm {
	return []Algorithm{{
		Kind: Rotate, Name: "direct", Ref: "none",
		About: "Every rank sends to the next.",
		Cost:  func(s *Shape, m *Model, _ []int) float64 { return m.atLeast(m.together(1, float64(s.Bytes))) },
		Build: func(b *sched.Builder, s *Shape, _ []int) {
			if s.Size == 1 {
				b.Copy(s.result(), s.data())
				return
			}
			src := b.Tmp(s.Bytes) // in place, the message that arrives would overwrite the data
			saved := b.Copy(src, s.data())
			b.Send((s.Rank+1)%s.Size, src, saved)
			b.Recv((s.Rank+s.Size-1)%s.Size, s.result(), saved)
		},
	}}
}
`},
			{"mpi/coll_move.go", `import "github.com/muster-mpi/muster/internal/coll"`, `
// Rotate copies the in of each rank to the out of the next.
func Rotate[T Elem](c *Comm, in, out []T) error { return rotateArgs(c, in, out).call() }

// Irotate starts a [Rotate].
func Irotate[T Elem](c *Comm, in, out []T) Request { return rotateArgs(c, in, out).start() }

// RotateInit prepares a [Rotate].
func RotateInit[T Elem](c *Comm, in, out []T) *Persistent { return rotateArgs(c, in, out).prepare() }

func rotateArgs[T Elem](c *Comm, in, out []T) collArgs[T] {
	return collArgs[T]{c: c, kind: coll.Rotate, in: in, out: out}
}
`},
		},
		check: func(t *testing.T, c *changedTree) {
			c.shows(t, nil, `direct`, "sched", "rotate", "--ranks", "3")
		},
	},
	{
		what: "Add a benchmark", most: 2,
		edits: []edit{
			{"bench/pingpong.go", "Flags: []Flag{{Name: \"threads\",", `
		{Name: "self-latency", Title: "Latency to Itself", Doc: "time of a message of a rank to itself", Ranks: 1, Sizes: []int{8},
			Metric: "latency", Unit: "us", Column: "Latency (us)", Run: selfLatency},
`},
			{"bench/pingpong.go", "const pingTag = 1", `
// selfLatency: a rank sends to itself.
func selfLatency(c *mpi.Comm, p *Params, emit func(Result)) error {
	for _, size := range p.Sizes {
		_, n := p.iterations(size, 1000, 100)
		sbuf, rbuf := buffers(size)
		var s samples
		for range n {
			start := time.Now()
			req := mpi.Irecv(c, rbuf, 0, pingTag)
			if err := mpi.Send(c, sbuf, 0, pingTag); err != nil {
				return err
			}
			if _, err := req.Wait(); err != nil {
				return err
			}
			s.add(time.Since(start), 1)
		}
		emit(s.times(Result{Size: size}, 1))
	}
	return nil
}
`},
			{"bench/groups/plan_shared.go", "claims: []results.Claim{{Text: \"start of 64 ranks\"}},", `
		},
		{
			name: "self", title: "Message of a rank to itself", ranks: 1,
			ours: "self-latency --sizes 8", quantity: latencyMicros,
			lines:  []line{{title: "8 B", size: 8, bound: 5}},
			claims: []results.Claim{{Text: "a message to itself, µs"}},
`},
		},
		check: func(t *testing.T, c *changedTree) {
			c.shows(t, nil, `"latency"`, "bench", "self-latency", "-i", "10", "--json")
			c.shows(t, nil, `self-latency`, "bench", "--help")
		},
	},
	{
		what: "Add a device", most: 4,
		edits: []edit{
			{"rdma/loop/doc.go", "", "// Package loop is a device that adds nothing to another.\npackage loop\n"},
			{"rdma/loop/loop.go", "", `package loop

import "github.com/muster-mpi/muster/rdma"

// Open returns a device that adds nothing to another.
func Open(d rdma.Device, err error) (rdma.Device, error) {
	if err != nil {
		return nil, err
	}
	return device{d}, nil
}

type device struct{ rdma.Device }
`},
			{"internal/devices/devices.go", `"github.com/muster-mpi/muster/rdma"`, "\t\"github.com/muster-mpi/muster/rdma/loop\"\n"},
			{"internal/devices/devices.go", `Verbs: []Variant{{"nocrc", "the same with a CRC of the headers alone", noCRC}}},`, `
		{Name: "loop", Doc: "a device that adds nothing to rd", Use: Channel, Type: rdma.RD, Probes: true, Probe: needsLinux, Open: func(c *Config) (rdma.Device, error) { return loop.Open(openDatagrams(c)) }},
`},
		},
		check: func(t *testing.T, c *changedTree) {
			c.shows(t, nil, `(?m)^loop +(yes|no; needs Linux)`, "info")
			c.shows(t, nil, `hybrid.*loop`, "bench", "latency", "--help")
		},
	},
}

func TestAdditions(t *testing.T) {
	if testing.Short() {
		t.Skip("builds muster")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	c := &changedTree{FS: os.DirFS("."), changed: fstest.MapFS{}}
	for _, a := range additions {
		touched := fstest.MapFS{}
		for _, e := range a.edits {
			c.apply(t, e)
			touched[e.file] = c.changed[e.file]
		}
		if len(touched) > a.most {
			t.Errorf("%s touches %d files, want at most %d", a.what, len(touched), a.most)
		}
		a.checkGuide(t)
	}
	c.checkRules(t)
	c.build(t)
	for _, a := range additions {
		t.Run(strings.ReplaceAll(a.what, " ", "-"), func(t *testing.T) { a.check(t, c) })
	}
}

// checkGuide checks that CONTRIBUTING.md names each file, or its folder, or that of a new one.
func (a *addition) checkGuide(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## "+a.what+"\n")
	if !found {
		t.Errorf("CONTRIBUTING.md has no section %q", a.what)
		return
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for i, e := range a.edits {
		named := func(name string) bool { return strings.Contains(section, "`"+name+"`") }
		folder := path.Dir(e.file)
		if i == len(a.edits)-1 && a.what == "Add a setting" {
			continue // the file that uses the setting, which may be any
		}
		if !named(e.file) && !named(folder) && (e.after != "" || !named(path.Dir(folder))) {
			t.Errorf("section %q of CONTRIBUTING.md does not name `%s`", a.what, e.file)
		}
	}
}

// changedTree is the tree with the files that the additions change.
type changedTree struct {
	fs.FS
	changed fstest.MapFS
	program string // muster, built from it
}

func (c *changedTree) Open(name string) (fs.File, error) {
	if c.changed[name] != nil {
		return c.changed.Open(name)
	}
	return c.FS.Open(name)
}

// ReadDir lists the new files of a folder, too.
func (c *changedTree) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(c.FS, name)
	added, err2 := fs.ReadDir(c.changed, name)
	if err != nil && err2 != nil {
		return nil, err
	}
	for _, d := range added {
		if _, err := fs.Stat(c.FS, path.Join(name, d.Name())); err != nil {
			list = append(list, d)
		}
	}
	return list, nil
}

func (c *changedTree) apply(t *testing.T, e edit) {
	t.Helper()
	if e.after == "" {
		if _, err := fs.Stat(c, e.file); err == nil {
			t.Fatalf("%s is to be a new file, but exists", e.file)
		}
		c.changed[e.file] = &fstest.MapFile{Data: []byte(e.text)}
		return
	}
	text, err := fs.ReadFile(c, e.file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	var whole, begin []int
	for i, line := range lines {
		switch line = strings.TrimSpace(line); {
		case line == e.after:
			whole = append(whole, i)
		case strings.HasPrefix(line, e.after):
			begin = append(begin, i)
		}
	}
	if len(whole) == 0 {
		whole = begin
	}
	if len(whole) != 1 {
		t.Fatalf("%s has %d lines that begin with %q, want one: correct the row of additions", e.file, len(whole), e.after)
	}
	lines = slices.Insert(lines, whole[0]+1, strings.TrimPrefix(e.text, "\n"))
	c.changed[e.file] = &fstest.MapFile{Data: []byte(strings.Join(lines, ""))}
}

// checkRules applies the house rules to the changed files.
func (c *changedTree) checkRules(t *testing.T) {
	t.Helper()
	files := maps.Clone(c.changed)
	for name := range c.changed {
		doc := path.Dir(name) + "/doc.go"
		if text, err := fs.ReadFile(c, doc); err == nil {
			files[doc] = &fstest.MapFile{Data: text}
		}
	}
	for _, fault := range inspect(files) {
		t.Error(fault)
	}
}

// build builds muster. It uses the build cache for the packages that are not affected.
func (c *changedTree) build(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for name, file := range c.changed {
		at, err := filepath.Abs(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(dir, strings.ReplaceAll(name, "/", "+"))
		if err := os.WriteFile(copied, file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[at] = copied
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o644); err != nil {
		t.Fatal(err)
	}
	c.program = filepath.Join(dir, "muster")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-overlay", list, "-o", c.program, "./cmd/muster").CombinedOutput(); err != nil {
		t.Fatalf("the tree with the additions does not build: %v\n%s", err, out)
	}
}

// shows checks that a command of muster prints text that matches a pattern, as output or as
// an error.
func (c *changedTree) shows(t *testing.T, env []string, pattern string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.program, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if !regexp.MustCompile(pattern).Match(out) {
		t.Errorf("%s muster %s does not print %q (%v):\n%s", strings.Join(env, " "), strings.Join(args, " "), pattern, err, out)
	}
}
