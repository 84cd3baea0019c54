package shm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"golang.org/x/sys/unix"
)

// Tests with real processes: the test binary starts itself again, once for each rank. A
// child opens its device, prints its address, reads the addresses of all, and then plays
// its part in the scenario.

const childVariable = "MUSTER_SHM_TEST_CHILD"

// part describes a child's role.
type part struct {
	Scenario string
	Index, N int
	Config   Config
	Sizes    []int
	Count    int
	Refuse   string // see refuseProcessVM
}

func TestMain(m *testing.M) {
	text := os.Getenv(childVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := playPart(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func playPart(text string) error {
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	time.AfterFunc(lifetime, func() { panic("the scenario does not end") })
	p.Config.Index, p.Config.Peers = p.Index, p.N
	if p.Refuse != "" {
		if err := refuseProcessVM(p.Refuse); err != nil {
			return err
		}
	}
	r, err := openRank(p.Config, rdma.SRQConfig{Lend: true})
	if err != nil {
		return err
	}
	fmt.Println(r.qp.Addr())
	in := bufio.NewScanner(os.Stdin)
	for i := range p.N {
		if !in.Scan() {
			return fmt.Errorf("rank %d: the list of addresses ends at %d", p.Index, i)
		}
		if _, err := r.dev.Resolve(rdma.Addr(in.Text())); err != nil {
			return err
		}
	}
	play := scenarios[p.Scenario]
	if play == nil {
		return fmt.Errorf("no scenario %q", p.Scenario)
	}
	if err := play(r, &p); err != nil {
		return fmt.Errorf("rank %d: %w", p.Index, err)
	}
	in.Scan() // the parent closes the input when all have finished
	return r.dev.Close()
}

// cast holds the running children of a scenario.
type cast struct {
	t     testing.TB
	ranks []*child
}

type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr bytes.Buffer
}

// lifetime bounds every child: go test does not stop benchmarks that hang, nor
// the children of tests that do.
const lifetime = 90 * time.Second

// start begins a scenario; pinned binds rank i to core i.
func start(t testing.TB, p part, pinned bool) *cast {
	t.Helper()
	c := &cast{t: t}
	for i := range p.N {
		p.Index = i
		c.ranks = append(c.ranks, startChild(t, p, pinned))
	}
	t.Cleanup(c.kill)
	var all strings.Builder
	for i, r := range c.ranks {
		if !r.out.Scan() {
			t.Fatalf("rank %d printed no address: %s", i, r.stderr.String())
		}
		all.WriteString(r.out.Text() + "\n")
	}
	for _, r := range c.ranks {
		if _, err := io.WriteString(r.in, all.String()); err != nil {
			t.Fatalf("cannot distribute the addresses: %v", err)
		}
	}
	return c
}

func startChild(t testing.TB, p part, pinned bool) *child {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childVariable+"="+string(text), "GOMAXPROCS=2")
	c.cmd.Stderr = &c.stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if pinned {
		// A child inherits the CPU mask of the thread that starts it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var old, one unix.CPUSet
		if err := unix.SchedGetaffinity(0, &old); err != nil {
			t.Fatal(err)
		}
		one.Set(p.Index % runtime.NumCPU())
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Fatal(err)
		}
		defer unix.SchedSetaffinity(0, &old)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// line returns the next line that rank i prints.
func (c *cast) line(i int) string {
	c.t.Helper()
	if !c.ranks[i].out.Scan() {
		c.ranks[i].cmd.Wait()
		c.t.Fatalf("rank %d ended early: %s", i, c.ranks[i].stderr.String())
	}
	return c.ranks[i].out.Text()
}

// finish waits until every rank has printed "end", lets all exit, and reports those that
// failed.
func (c *cast) finish(limit time.Duration) {
	c.t.Helper()
	defer time.AfterFunc(limit, c.kill).Stop()
	for _, r := range c.ranks {
		for r.out.Scan() && r.out.Text() != "end" {
		}
	}
	for i, r := range c.ranks {
		r.in.Close()
		if err := r.cmd.Wait(); err != nil {
			c.t.Errorf("rank %d: %v: %s", i, err, r.stderr.String())
		}
	}
}

func (c *cast) kill() {
	for _, r := range c.ranks {
		if r.cmd.ProcessState == nil {
			r.cmd.Process.Kill()
			r.cmd.Wait()
		}
	}
}
