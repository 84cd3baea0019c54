//go:build channels && linux

package channels

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

// job is a program on the hosts of a lab, over software iWARP.
type job struct {
	dir   string
	hosts *lab.Lab
	ranks []string // the hosts of the ranks
	sshd  []string // the command of their ssh servers
}

func build(t *testing.T, cfg lab.Config) *job {
	t.Helper()
	if testing.Short() {
		t.Skip("creates hosts and runs jobs on them")
	}
	j := &job{dir: t.TempDir(), hosts: lab.New(t, cfg)}
	j.ranks = j.hosts.Hosts()
	built.Do(buildPrograms)
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	for _, name := range []string{"muster", "storm"} { // links, by which a test finds its own processes
		if err := os.Link(filepath.Join(scratch, name), filepath.Join(j.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// The programs are built once, in the directory scratch.
var (
	built    sync.Once
	buildErr error
	scratch  string
)

func buildPrograms() {
	for name, source := range map[string]string{"muster": "../../cmd/muster", "storm": "./storm"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(scratch, name), source).CombinedOutput(); err != nil {
			buildErr = fmt.Errorf("go build %s: %w\n%s", source, err, out)
		}
	}
}

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "channels"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(scratch)
	os.Exit(status)
}

// command returns the launcher command of storm with perHost ranks on each host.
func (j *job) command(t *testing.T, perHost int, env []string, args ...string) *exec.Cmd {
	return j.program(t, perHost, env, append([]string{filepath.Join(j.dir, "storm")}, args...)...)
}

// program is command for any program, which follows flags of the launcher.
func (j *job) program(t *testing.T, perHost int, env []string, words ...string) *exec.Cmd {
	var hosts []string
	for _, h := range j.ranks {
		hosts = append(hosts, h+":"+strconv.Itoa(perHost))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	args := []string{"run", "--hosts", strings.Join(hosts, ","), "--rsh", j.hosts.Rsh()}
	cmd := exec.CommandContext(ctx, filepath.Join(j.dir, "muster"), append(args, words...)...)
	cmd.Env = append(append(os.Environ(), "MUSTER_NETWORK=iwarp"), env...)
	return cmd
}

func (j *job) run(t *testing.T, perHost int, prog ...string) string {
	t.Helper()
	out, err := j.command(t, perHost, nil, prog...).CombinedOutput()
	if err != nil {
		t.Fatalf("storm %s: %v\n%s", strings.Join(prog, " "), err, out)
	}
	return string(out)
}

func TestPacketLoss(t *testing.T) {
	j := build(t, lab.Config{Hosts: 2})
	for _, h := range j.hosts.Hosts() {
		if err := j.hosts.Loss(h, 0, 0.05); err != nil {
			t.Fatal(err)
		}
	}
	out := j.run(t, 2, "exchange", "-messages", "300")
	if n := strings.Count(out, "has exchanged 300 messages"); n != 4 {
		t.Errorf("%d of 4 ranks have exchanged all:\n%s", n, out)
	}
}

// The same with reliability on top of unreliable datagrams (T1 6.6.1).
func TestPacketLossUnreliableDatagrams(t *testing.T) {
	j := build(t, lab.Config{Hosts: 2})
	for _, h := range j.hosts.Hosts() {
		if err := j.hosts.Loss(h, 0, 0.05); err != nil {
			t.Fatal(err)
		}
	}
	out, err := j.command(t, 2, []string{"MUSTER_CHANNEL=ud"}, "exchange", "-messages", "300").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "has exchanged 300 messages"); n != 4 {
		t.Errorf("%d of 4 ranks have exchanged all:\n%s", n, out)
	}
}

// The cable is slow enough that the 90 MB of each direction outlast the first cut on any machine.
func TestCutCable(t *testing.T) {
	j := build(t, lab.Config{Hosts: 2, Rate: "400mbit"})
	host := j.hosts.Hosts()[1]
	cmd := j.command(t, 1, nil, "exchange", "-messages", "20000", "-longest", "50000")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	cuts := 0
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			if cuts == 0 {
				t.Error("the job was over before its cable was cut")
			}
			return
		case <-time.After(300 * time.Millisecond):
			if cuts == 3 {
				continue
			}
			cuts++
			for _, change := range []func(string, int) error{j.hosts.Cut, j.hosts.Mend} {
				if err := change(host, 0); err != nil {
					t.Fatal(err)
				}
				time.Sleep(700 * time.Millisecond) // the cable stays cut for real time
			}
		}
	}
}

var grown = regexp.MustCompile(`grew by (\d+) KB`)

// All ranks send to one that is late: nothing is lost, no rank hangs, and the memory of
// the receiver is bounded.
func TestThirtyOneRanksFloodOne(t *testing.T) {
	j := build(t, lab.Config{Hosts: 4})
	out := j.run(t, 8, "flood", "-messages", "400", "-longest", "60000")
	m := grown.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no output of rank 0:\n%s", out)
	}
	kb, _ := strconv.Atoi(m[1])
	t.Logf("rank 0 grew by %d KB", kb)
	if kb > 64<<10 {
		t.Errorf("rank 0 grew by %d KB while it was flooded", kb)
	}
}

// A receiver that is stopped for longer than any network timer is not considered failed.
func TestReceiverStoppedForFiveSeconds(t *testing.T) {
	j := build(t, lab.Config{Hosts: 2})
	cmd := j.command(t, 1, nil, "exchange", "-messages", "20000", "-longest", "50000")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	victims := j.awaitRanks(t, j.hosts.Hosts()[1], &out)
	time.Sleep(100 * time.Millisecond) // until messages flow
	for _, pid := range victims {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("the job ended while a rank was stopped: %v\n%s", err, out.String())
	case <-time.After(5 * time.Second):
	}
	for _, pid := range victims {
		_ = syscall.Kill(pid, syscall.SIGCONT) // fails only if it has died, which the job reports
	}
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

// awaitRanks waits until ranks of the job run on a host, and returns their processes.
func (j *job) awaitRanks(t *testing.T, host string, out fmt.Stringer) []int {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) { // real processes
		if pids := j.processes(t, host); len(pids) > 0 {
			return pids
		}
		if time.Now().After(deadline) {
			t.Fatalf("no rank runs on %s:\n%s", host, out)
		}
	}
}

// processes returns the processes of the job's ranks on a host.
func (j *job) processes(t *testing.T, host string) (pids []int) {
	out, err := exec.Command("ip", "netns", "pids", host).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(out)) {
		if exe, err := os.Readlink("/proc/" + word + "/exe"); err == nil && exe == filepath.Join(j.dir, "storm") {
			pid, _ := strconv.Atoi(word)
			pids = append(pids, pid)
		}
	}
	return pids
}

// Every call that waits for a killed rank returns within a second and names it.
func TestKilledRankIsReportedWithinASecond(t *testing.T) {
	j := build(t, lab.Config{Hosts: 2})
	// A pause of the machine may delay the eight ranks once.
	var slowest []time.Duration
	for range 3 {
		took := j.killOne(t)
		if took <= time.Second {
			return
		}
		slowest = append(slowest, took)
	}
	t.Errorf("the last of the ranks reports it after %v", slowest)
}

// killOne kills rank 1 of a job in which all other ranks wait for it, and returns the time
// until the last of them reports it.
func (j *job) killOne(t *testing.T) (slowest time.Duration) {
	t.Helper()
	cmd := j.command(t, 4, nil, "wait")
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []string
	var killed time.Time
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			line := lines.Text()
			mu.Lock()
			all = append(all, line)
			mu.Unlock()
			var pid int
			if _, text, ok := strings.Cut(line, "victim "); ok {
				fmt.Sscan(text, &pid)
				time.Sleep(500 * time.Millisecond) // until the others wait
				mu.Lock()
				killed = time.Now()
				mu.Unlock()
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}()
	_ = cmd.Wait() // the job fails, as it should
	w.Close()
	<-read
	reported := 0
	for _, line := range all {
		_, text, ok := strings.Cut(line, "wait ended: ")
		if !ok {
			continue
		}
		var rank int
		var at int64
		fmt.Sscan(text, &rank, &at)
		after := time.UnixMilli(at).Sub(killed)
		if slowest = max(slowest, after); !strings.Contains(text, "rank 1") {
			t.Errorf("rank %d reports it after %v: %s", rank, after, text)
		}
		reported++
	}
	if reported != 7 {
		t.Errorf("%d of 7 ranks reported it:\n%s", reported, strings.Join(all, "\n"))
	}
	return slowest
}
