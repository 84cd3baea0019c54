//go:build cabi

package cabi_test

// Programs in C, C++ and Fortran on our libraries. Those of testdata check themselves: their first
// line has the number of ranks, further lines may have flags of the compiler and the only ABI, and
// rank 0 prints "No Errors". Those of testdata/ends end in special ways, which a table here lists.

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var bin = flag.String("cabi.bin", "../bin", "folder of muster, with the libraries in its folder cabi")

// Limits of a program: by muster run, which reports what the ranks do, and by the test.
const (
	jobLimit  = "60s"
	testLimit = 90 * time.Second
)

var (
	ranksLine = regexp.MustCompile(`^(?:/\*|!) ranks: ([0-9]+)(?: \*/)?\n`)
	onlyLine  = regexp.MustCompile(`(?m)^(?:/\*|!) only: ([\w ]+)`)
	flagsLine = regexp.MustCompile(`(?m)^(?:/\*|!) flags: ([^*\n]*)(?: \*/)?$`)
)

// family is an ABI, with the compilers for it.
type family struct {
	name          string // the flag of muster run
	cc, cxx, fort string
	debian        string // the package of the compilers
}

var families = []family{
	{"mpich", "mpicc.mpich", "mpicxx.mpich", "mpifort.mpich", "libmpich-dev"},
	{"openmpi", "mpicc.openmpi", "mpicxx.openmpi", "mpifort.openmpi", "libopenmpi-dev"},
	{"mpi5", "muster cc --abi", "", "", ""},
}

// Programs that check themselves, for each ABI. muster run finds out which one they need.
func TestPrograms(t *testing.T) {
	for _, f := range families {
		for pattern, compiler := range map[string]string{"testdata/*.c": f.cc, "testdata/fortran/*": f.fort, "testdata/cxx/*.cc": f.cxx} {
			if compiler == "" {
				continue
			}
			sources, err := filepath.Glob(pattern)
			if err != nil || len(sources) == 0 {
				t.Fatalf("no programs %s: %v", pattern, err)
			}
			for _, source := range sources {
				name, _, _ := strings.Cut(filepath.Base(source), ".")
				t.Run(f.name+"/"+name, func(t *testing.T) {
					t.Parallel()
					f.runProgram(t, compiler, source)
				})
			}
		}
	}
}

func (f family) runProgram(t *testing.T, compiler, source string) {
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	ranks := ranksLine.FindSubmatch(text)
	if ranks == nil {
		t.Fatalf("%s: the first line must be a comment such as /* ranks: 2 */", source)
	}
	if m := onlyLine.FindSubmatch(text); m != nil && !slices.Contains(strings.Fields(string(m[1])), f.name) {
		t.Skipf("the program is only for %s", m[1])
	}
	var flags []string
	if m := flagsLine.FindSubmatch(text); m != nil {
		flags = strings.Fields(string(m[1]))
	}
	var program string
	if f.debian == "" { // our own compiler
		program = compileWith(t, muster(), source, append(strings.Fields(compiler)[1:], flags...)...)
	} else {
		program = compileWith(t, tool(t, compiler, f.debian), source, flags...)
	}
	got := run(t, nil, muster(), "run", "--timeout", jobLimit, "-n", string(ranks[1]), program)
	if got.status != 0 || !strings.Contains(got.out, "No Errors") {
		t.Errorf("%s must print \"No Errors\" and end with status 0; it ended with %d and printed\n%s", source, got.status, got.out)
	}
}

// Debian's mpi4py is built for Open MPI. Python loads it, so that only the processes show what the
// program needs.
func TestPython(t *testing.T) {
	const python = "/usr/bin/python3" // that of the package
	if exec.Command(python, "-c", "import importlib.util as u; exit(u.find_spec('mpi4py') is None)").Run() != nil {
		t.Skip("mpi4py is not installed (Debian package python3-mpi4py)")
	}
	for _, ranks := range []string{"1", "3"} {
		got := run(t, nil, muster(), "run", "--timeout", jobLimit, "-n", ranks, python, "testdata/python.py")
		if got.status != 0 || !strings.Contains(got.out, "No Errors") {
			t.Errorf("%s ranks must print \"No Errors\": %+v", ranks, got)
		}
	}
}

// A program that needs the libraries of two ABIs is refused.
func TestTwoABIs(t *testing.T) {
	mixed := compileWith(t, tool(t, "mpicc.openmpi", "libopenmpi-dev"), "testdata/ends/greet.c", "-Wl,--no-as-needed", filepath.Join(libraries(), "libmpich.so.12"))
	got := run(t, nil, muster(), "run", "-n", "1", mixed)
	for _, want := range []string{"libmpich.so.12 (needed by greet)", "libmpi.so.40 (needed by greet)"} {
		if got.status == 0 || !strings.Contains(got.out, want) {
			t.Errorf("a program of two ABIs must be refused with %q: %+v", want, got)
		}
	}
}

// How programs end: the status of the launcher, and who reports what.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		prog   string
		ranks  string
		status int      // -1: any but 0
		want   []string // in the output
	}{
		{"greet", "3", 0, []string{"rank 0 of 3 got 2"}},
		{"abort", "2", 7, []string{"[1] the buffered line", "rank 1", "aborted the job with code 7"}},
		{"abort_zero", "2", 0, []string{"rank 1", "aborted the job with code 0"}},
		{"error", "2", -1, []string{"[1] the buffered line", "rank 1: MPI_Send: ", "no rank 99"}},
		{"unimplemented", "1", -1, []string{"MPI_T_source_get_timestamp: Muster does not implement this function yet"}},
		{"before_init", "1", -1, []string{"MPI_Comm_rank: called before MPI_Init"}},
		{"sigterm", "2", 128 + 15, []string{"killed by SIGTERM"}},
		{"segfault", "2", 128 + 11, []string{"killed by SIGSEGV"}},
		{"no_finalize", "2", -1, []string{"rank 1", "without calling Finalize"}},
		{"exit_in_thread", "2", 0, []string{"[0] the buffered line", "ranks 0-1 exited with status 0 without calling Finalize"}},
	} {
		t.Run(c.prog, func(t *testing.T) {
			t.Parallel()
			got := run(t, nil, muster(), "run", "--mpich", "--timeout", jobLimit, "-n", c.ranks, compile(t, "testdata/ends/"+c.prog+".c"))
			if got.status != c.status && (c.status != -1 || got.status == 0 || got.status == 124) {
				t.Errorf("the status must be %d (-1: any but 0), got %d", c.status, got.status)
			}
			for _, want := range c.want {
				if !strings.Contains(got.out, want) {
					t.Errorf("the output must have %q", want)
				}
			}
			if strings.Contains(got.out, "not reached") {
				t.Error("the program went on after an error")
			}
			if t.Failed() {
				t.Logf("%s printed\n%s", c.prog, got.out)
			}
		})
	}
}

// A child of fork gets errors, at once, and the parent goes on.
func TestChildOfFork(t *testing.T) {
	got := run(t, nil, muster(), "run", "--mpich", "--timeout", jobLimit, "-n", "2", compile(t, "testdata/ends/child_of_fork.c"))
	fatal, returned, ok := strings.Cut(got.out, "errors return:")
	if got.status != 0 || !ok || !strings.Contains(got.out, "the messages of the parent arrived") {
		t.Fatalf("the parent must go on; the status is %d and the output\n%s", got.status, got.out)
	}
	for _, c := range []struct{ name, function string }{
		{"send", "MPI_Send"}, {"receive", "MPI_Recv"}, {"allreduce", "MPI_Allreduce"}, {"finalize", "MPI_Finalize"}, {"init", "MPI_Init"}, {"abort", "MPI_Abort"}, {"exit", ""},
	} {
		status, text := map[string]string{"abort": "6", "exit": "5"}[c.name], c.function+" called in a child process of fork; only the process that called MPI_Init may call MPI"
		if status == "" {
			status = "15"
		}
		if !strings.Contains(fatal, c.name+": status "+status+", signal 0") || c.function != "" && !strings.Contains(fatal, text) {
			t.Errorf("%s must end the child with status %s and print %q", c.name, status, text)
		}
		if status == "15" {
			status = "50"
		}
		if !strings.Contains(returned, c.name+": status "+status+", signal 0") {
			t.Errorf("%s must end the child with status %s if errors return", c.name, status)
		}
	}
	if t.Failed() {
		t.Logf("the program printed\n%s", got.out)
	}
}

// Check mode names the functions of C, the lines that call them and the datatypes.
func TestCheckMode(t *testing.T) {
	for prog, want := range map[string][]string{
		"types_differ": {"MPI_Recv: ", "the element types differ: rank 1 sent with MPI_Send of MPI_FLOAT at ends/types_differ.c:13 (main), " +
			"rank 0 received with MPI_Recv of MPI_DOUBLE at ends/types_differ.c:15 (main)"},
		"forgotten": {"MPI_Barrier: ", "in Finalize at ends/forgotten.c:", "in Barrier at ends/forgotten.c:11 (main)"},
	} {
		t.Run(prog, func(t *testing.T) {
			t.Parallel()
			got := run(t, []string{"MUSTER_CHECK=on"}, muster(), "run", "--mpich", "--timeout", jobLimit, "-n", "2", compile(t, "testdata/ends/"+prog+".c", "-g"))
			for _, w := range want {
				if got.status == 0 || got.status == 124 || !strings.Contains(got.out, w) {
					t.Errorf("%s must fail with %q; the status is %d and the output\n%s", prog, w, got.status, got.out)
				}
			}
		})
	}
}

// A program is a job of one rank if nothing started it, which configure scripts rely on
// (MPI-4.1 section 11.9.1), and it runs under launchers that speak PMI. tests/launchers has Slurm.
func TestOtherLaunchers(t *testing.T) {
	program := compile(t, "testdata/ends/greet.c")
	env := []string{"LD_LIBRARY_PATH=" + libraries()}
	if got := run(t, env, program); got.status != 0 || got.out != "rank 0 of 1 has all\n" {
		t.Errorf("without a launcher there must be one rank: %+v", got)
	}
	t.Run("hydra", func(t *testing.T) {
		got := run(t, env, tool(t, "mpiexec.hydra", "mpich"), "-n", "3", program)
		if got.status != 0 || !strings.Contains(got.out, "rank 0 of 3 got 2\nrank 0 of 3 has all\n") {
			t.Errorf("under mpiexec.hydra there must be three ranks: %+v", got)
		}
	})
}

// Tools replace MPI_ functions and call PMPI_ (MPI-4.1 section 15.2).
func TestPMPITool(t *testing.T) {
	library := compile(t, "testdata/ends/count_sends.c", "-shared", "-fPIC")
	got := run(t, nil, muster(), "run", "--mpich", "--timeout", jobLimit, "-n", "2", "--env", "LD_PRELOAD="+library, compile(t, "testdata/ends/greet.c"))
	for _, want := range []string{"rank 0 called MPI_Send 0 times", "rank 1 called MPI_Send 1 times"} {
		if got.status != 0 || !strings.Contains(got.out, want) {
			t.Errorf("the tool must print %q: %+v", want, got)
		}
	}
}

// The profile names the functions of C and the lines that call them.
func TestProfile(t *testing.T) {
	got := run(t, nil, muster(), "run", "--mpich", "--profile", "full", "--timeout", jobLimit, "-n", "2", compile(t, "testdata/ends/profile.c", "-g", "-Wno-stringop-overflow"))
	for _, want := range []string{
		`(?m)^MPI_Waitall +200 .* ends/profile\.c:11 exchange$`, `(?m)^MPI_Isend +200 .* ends/profile\.c:10 exchange$`,
		`(?m)^MPI_Isend +200 +19\.5 KB +100 B .* exchange$`, `(?m)^MPI_Allreduce +2 .* ends/profile\.c:23 main$`,
	} {
		if got.status != 0 || !regexp.MustCompile(want).MatchString(got.out) {
			t.Errorf("the profile must have a line %s; the status is %d and the output\n%s", want, got.status, got.out)
		}
	}
}

// compile builds a program and returns its path.
func compile(t *testing.T, source string, flags ...string) string {
	t.Helper()
	return compileWith(t, tool(t, "mpicc.mpich", "libmpich-dev"), source, flags...)
}

func compileWith(t *testing.T, cc, source string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)))
	args := append([]string{"-O1", "-Wall"}, flags...)
	if cc == muster() {
		args = append(flags, "-O1", "-Wall")
	}
	if filepath.Ext(source) == ".f90" { // where modules are written
		args = append(args, "-J", filepath.Dir(program))
	}
	args = append(args, "-o", program, source)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", cc, strings.Join(args, " "), err, out)
	}
	return program
}

// tool returns the path of a command, or skips the test.
func tool(t *testing.T, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (Debian package %s)", name, debian)
	}
	return path
}

func muster() string { return filepath.Join(*bin, "muster") }

func libraries() string {
	path, err := filepath.Abs(filepath.Join(*bin, "cabi"))
	if err != nil {
		panic(err)
	}
	return path
}

type outcome struct {
	status int
	out    string // standard output and error
}

func run(t *testing.T, env []string, name string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("%s %s: %v; \"make test-cabi\" builds what it needs", name, strings.Join(args, " "), err)
	}
	return outcome{cmd.ProcessState.ExitCode(), string(out)}
}
