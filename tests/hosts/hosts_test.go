//go:build ofi && cgo && linux

package hosts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

// binaries are the programs of the ranks.
type binaries struct{ muster, tests string }

// build builds the command and the tests of package mpi, with libfabric, when the first test
// asks for them.
func build(t *testing.T) binaries {
	t.Helper()
	b := binaries{filepath.Join(scratch, "muster"), filepath.Join(scratch, "mpi.test")}
	built.Do(func() {
		for _, args := range [][]string{
			{"build", "-tags", "ofi", "-o", b.muster, "../../cmd/muster"},
			{"test", "-c", "-tags", "ofi", "-o", b.tests, "../../mpi"},
		} {
			if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
				buildErr = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
			}
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return b
}

var (
	built    sync.Once
	buildErr error
	scratch  string // the directory of the programs
)

// run starts a job with perHost ranks on each host of the lab.
func (b binaries) run(t *testing.T, l *lab.Lab, perHost int, flags []string, prog ...string) *exec.Cmd {
	t.Helper()
	var hosts []string
	for _, h := range l.Hosts() {
		hosts = append(hosts, h+":"+strconv.Itoa(perHost))
	}
	return b.runOn(t, l, 7*time.Minute, hosts, flags, prog...)
}

// runOn starts a job on hosts with given slots. The job is killed after the limit.
func (b binaries) runOn(t *testing.T, l *lab.Lab, limit time.Duration, slots, flags []string, prog ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	args := append([]string{"run", "--hosts", strings.Join(slots, ","), "--rsh", l.Rsh()}, flags...)
	cmd := exec.CommandContext(ctx, b.muster, append(args, prog...)...)
	cmd.Dir = "../../mpi"
	return cmd
}

// failures matches lines that name a failed test or the reason why a rank left.
var failures = regexp.MustCompile(`(?m)^.*(--- FAIL|leaves the job:|mpitest:|panic:).*$`)

func TestLibraryTestsOnFourHosts(t *testing.T) {
	b := build(t)
	l := lab.New(t, lab.Config{Hosts: 4})
	out, err := b.run(t, l, 4, nil, b.tests, "-test.timeout", "300s").CombinedOutput()
	if err != nil {
		// The first failures come last, where the reader of a long report looks.
		t.Fatalf("%v\n%s\nthe tests that failed:\n%s", err, out, strings.Join(failures.FindAllString(string(out), 20), "\n"))
	}
	if n := bytes.Count(out, []byte("PASS")); n != 16 {
		t.Errorf("%d of 16 ranks print PASS:\n%s", n, out)
	}
}

// Connections from outside the job must not disturb it, whether they send garbage or
// nothing at all.
func TestPortScan(t *testing.T) {
	b := build(t)
	l := lab.New(t, lab.Config{Hosts: 2})
	cmd := b.run(t, l, 1, nil, b.muster, "bench", "latency", "--sizes", "8", "--iterations", "30000")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	scanned := 0
	for scanning := true; scanning; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			scanning = false
		default:
			for _, h := range l.Hosts() {
				for _, port := range listening(t, l, h) {
					scanned++
					scan(t, l, h, port)
				}
			}
		}
	}
	if scanned == 0 {
		t.Error("no listening port was found while the job ran")
	}
	t.Logf("%d ports scanned\n%s", scanned, out.String())
}

var portPattern = regexp.MustCompile(`(?m)^LISTEN\s+\d+\s+\d+\s+\S*:(\d+)\s`)

// listening returns the open TCP ports of a host.
func listening(t *testing.T, l *lab.Lab, host string) (ports []string) {
	out, err := l.Command(t.Context(), host, "ss", "-ltnH").Output()
	if err != nil {
		t.Fatalf("ss on %s: %v", host, err)
	}
	for _, m := range portPattern.FindAllSubmatch(out, -1) {
		ports = append(ports, string(m[1]))
	}
	return ports
}

// scan connects and sends garbage: nothing, a line, a kilobyte of random bytes.
func scan(t *testing.T, l *lab.Lab, host, port string) {
	script := fmt.Sprintf(`for what in : 'echo GET / HTTP/1.0' 'head -c 1024 /dev/urandom'; do
		exec 3<>/dev/tcp/%s/%s && $what >&3; exec 3>&-; done`, l.Addr(host, 0), port)
	cmd := l.Command(t.Context(), host, "bash", "-c", script)
	cmd.WaitDelay = time.Second
	_ = cmd.Run() // the port may be closed by now
}

func TestMain(m *testing.M) {
	os.Setenv("CGO_ENABLED", "1")
	var err error
	if scratch, err = os.MkdirTemp("", "hosts"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(scratch)
	os.Exit(status)
}

func TestHelloOnFourHosts(t *testing.T) {
	b := build(t)
	l := lab.New(t, lab.Config{Hosts: 4})
	start := time.Now()
	out, err := b.run(t, l, 16, nil, b.muster, "bench", "first-message", "--json").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Each rank sends to one other, so each fetches at most one card.
	if !bytes.Contains(out, []byte(`"ranks":64`)) || !regexp.MustCompile(`"metric":"cards".*"value":1,`).Match(out) {
		t.Errorf("64 ranks that send to one other each should fetch one card each:\n%s", out)
	}
	t.Logf("%v from start to end\n%s", time.Since(start), out)
}
