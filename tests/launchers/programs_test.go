//go:build launchers

package launchers

// What runs under the launchers. A program is built when the first test asks for
// it; the fabric between hosts is libfabric, so programs that send messages have
// its tag.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is something to build.
type program struct {
	args  []string // of go, from the root of the module
	needs []string // of pkg-config
	words []string // its own arguments
	once  sync.Once
	path  string
	err   error
}

var (
	// bootstrap is the tests of internal/pmi, which can play a rank; plain is
	// the same without PMIx.
	bootstrap = &program{args: []string{"test", "-c", "-tags=pmix", "./internal/pmi"}}
	plain     = &program{args: []string{"test", "-c", "./internal/pmi"}}
	ring      = &program{args: []string{"build", "-tags=pmix,ofi", "./examples/02-ring"}, needs: []string{"libfabric"}}
	mpi       = &program{args: []string{"test", "-c", "-tags=pmix,ofi", "./mpi"}, needs: []string{"libfabric"},
		// Together these tests use every protocol.
		words: []string{"-test.timeout=50s", "-test.run=^(TestSend|TestRecv|TestProbe|TestSplit$)"}}
	muster = &program{args: []string{"build", "./cmd/muster"}}
)

// scratch is the directory of programs and servers.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "launchers"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Chmod(scratch, 0o755) // servers access it as other users
	status := m.Run()
	os.RemoveAll(scratch)
	os.Exit(status)
}

// command returns the program, built if necessary, and its arguments. It skips the test
// if the program cannot be built.
func (p *program) command(t *testing.T) []string {
	t.Helper()
	for _, name := range p.needs {
		if err := exec.Command("pkg-config", "--exists", name).Run(); err != nil {
			t.Skipf("needs %s (Debian packages pkg-config and libfabric-dev)", name)
		}
	}
	p.once.Do(func() {
		p.path = filepath.Join(scratch, strings.NewReplacer("/", "-", ".", "", ",", "-").Replace(strings.Join(p.args, "")))
		verb := len(p.args) - 1 // before the package
		cmd := exec.Command("go", append(append(p.args[:verb:verb], "-o", p.path), p.args[verb])...)
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			p.err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
		}
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return append([]string{p.path}, p.words...)
}

// role makes the tests of internal/pmi act as a rank.
const role = "PMI_TEST_ROLE="

// tool returns the path of a launcher, or skips the test.
func tool(t *testing.T, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (Debian package %s)", name, debian)
	}
	return path
}

// asRoot skips the test for other users.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for servers and network namespaces")
	}
}

// run runs a command and returns its output.
func run(t *testing.T, env []string, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	cmd.Cancel = func() error {
		showStacks()
		return cmd.Process.Kill()
	}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return string(out), err
}

// showStacks makes the programs built here print their stacks and exit: launchers do not
// stop all of them when they are killed.
func showStacks() {
	procs, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range procs {
		if path, err := os.Readlink(exe); err == nil && filepath.Dir(path) == scratch {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(exe))); err == nil {
				syscall.Kill(pid, syscall.SIGQUIT)
			}
		}
	}
	time.Sleep(500 * time.Millisecond) // until they have printed their stacks
}

// end returns the last lines of a long output, for a report.
func end(out string) string {
	const lines = 200
	all := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(all) > lines {
		all = append([]string{fmt.Sprintf("(%d lines before)", len(all)-lines)}, all[len(all)-lines:]...)
	}
	return strings.Join(all, "\n")
}

// prints runs a command that must succeed and print all the lines, whatever prefixes its
// launcher adds.
func prints(t *testing.T, env []string, lines []string, name string, args ...string) {
	t.Helper()
	out, err := run(t, env, name, args...)
	if err != nil {
		t.Errorf("%s %s: %v; it printed\n%s", name, strings.Join(args, " "), err, end(out))
		return
	}
	for _, line := range lines {
		if !strings.Contains(out+"\n", line+"\n") {
			t.Errorf("%s %s must print %q; it printed\n%s", name, strings.Join(args, " "), line, end(out))
		}
	}
}

// trial is a program under a launcher.
type trial struct {
	name string
	env  []string
	want []string // lines that it must print
	how  []string // options of the launcher
	prog *program
}

// tryAll starts a launcher with each trial's options and program.
func tryAll(t *testing.T, env, launcher []string, trials []trial) {
	t.Helper()
	for _, c := range trials {
		t.Run(c.name, func(t *testing.T) {
			prints(t, slices.Concat(env, c.env), c.want, launcher[0], slices.Concat(launcher[1:], c.how, c.prog.command(t))...)
		})
	}
}

// nodeLines returns the output of an exchange: for each rank its node and its local
// rank there.
func nodeLines(nodes ...int) (lines []string) {
	all := map[int]int{}
	for _, node := range nodes {
		all[node]++
	}
	before := map[int]int{}
	for rank, node := range nodes {
		lines = append(lines, fmt.Sprintf("rank %d of %d, %d of %d on node %d", rank, len(nodes), before[node], all[node], node))
		before[node]++
	}
	return lines
}

// ringOfFour is what examples/02-ring prints.
var ringOfFour = []string{"the token went through 4 ranks and brings 6"}
