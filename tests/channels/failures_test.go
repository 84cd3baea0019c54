//go:build channels && linux

package channels

// Jobs on four hosts that survive failures (MUSTER_ON_FAILURE=return). The launcher runs on a
// fifth and reaches the others by ssh, so that a cut cable separates it from them.

import (
	"bytes"
	"flag"
	"fmt"
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
	"github.com/muster-mpi/muster/internal/seeded"
)

var (
	killFiles = flag.Int("kill.files", 16, "in TestFailures/files, at least so many ranks are killed in collective writes")
	killEach  = flag.Bool("kill.each", false, "in TestFailures/matrix, kill three different ranks in each call, in jobs of their own")
)

const (
	// killedSteps is the number of calls in which the program of package mpi kills a rank.
	killedSteps = 18
	// lostBound is the MUSTER_PEER_TIMEOUT of the tests.
	lostBound = 5 * time.Second
)

func TestFailures(t *testing.T) {
	j := build(t, lab.Config{Hosts: 5})
	j.ranks = j.ranks[:4]
	tests := filepath.Join(j.dir, "mpi.test")
	if out, err := exec.Command("go", "test", "-c", "-o", tests, "../../mpi").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	t.Run("matrix", func(t *testing.T) { j.killMatrix(t, tests) })
	t.Run("files", func(t *testing.T) { j.killInFiles(t, tests) })
	rsh := j.sshServers(t)
	t.Run("short", func(t *testing.T) { j.shortFaults(t, rsh) })
	t.Run("lost", func(t *testing.T) { j.lostHosts(t, rsh) })
}

// killMatrix kills a rank in every kind of call: several in one job, or with -kill.each one, and
// then each of three ranks.
func (j *job) killMatrix(t *testing.T, tests string) {
	var all []time.Duration
	want := killedSteps
	if *killEach {
		want *= 3
		for _, victim := range []string{"first", "middle", "last"} {
			for n := range killedSteps {
				all = append(all, j.killSome(t, tests, victim, n, n+1)...)
			}
		}
	} else {
		all = append(j.killSome(t, tests, "first", 0, killedSteps/2), j.killSome(t, tests, "middle", killedSteps/2, killedSteps)...)
	}
	// A pause of the machine may delay a few of them.
	late, longest := 0, time.Duration(0)
	for _, after := range all {
		if longest = max(longest, after); after > time.Second {
			late++
		}
	}
	t.Logf("%d failures, the last error after %v at most, %d of them after more than a second", len(all), longest, late)
	if len(all) != want || late > len(all)/10 {
		t.Errorf("%d failures, want %d; %d errors came after more than a second: %v", len(all), want, late, all)
	}
}

var errorAfter = regexp.MustCompile(`(?m): \d+ ranks left, error after (\S+)$`)

// killSome kills a rank in each of some calls, and returns how long after each the last rank
// got its error.
func (j *job) killSome(t *testing.T, tests, victim string, from, to int) (after []time.Duration) {
	t.Helper()
	program := fmt.Sprintf("kill matrix %s %d %d", victim, from, to)
	cmd := j.program(t, 4, []string{"MUSTER_ON_FAILURE=return"},
		"--env", "MPI_TEST_PROGRAM="+program, "--env", "KILL_DIR="+t.TempDir(), tests)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", program, err, out)
		return nil
	}
	for _, m := range errorAfter.FindAllStringSubmatch(string(out), -1) {
		d, err := time.ParseDuration(m[1])
		if err != nil {
			t.Fatal(err)
		}
		after = append(after, d)
	}
	return after
}

// killInFiles kills ranks in collective writes of random pieces: the others end their calls, what they have
// written is in the file, and the checkpoint before can be read.
func (j *job) killInFiles(t *testing.T, tests string) {
	const together = 8 // of the twelve ranks of a job
	seed := seeded.Seed()
	t.Logf("repeat with SEED=%d", seed)
	for done := 0; done < *killFiles; done += together {
		program := fmt.Sprintf("kill in files %d %d", seed+uint64(done), together)
		cmd := j.program(t, 3, []string{"MUSTER_ON_FAILURE=return"}, "--env", "MPI_TEST_PROGRAM="+program, "--env", "KILL_DIR="+t.TempDir(), tests)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), fmt.Sprintf("%d kills, 4 ranks left", together)) {
			t.Errorf("%s: %v\n%s", program, err, out)
		}
	}
}

// sshServers starts an ssh server on every host, and returns the command of the client.
func (j *job) sshServers(t *testing.T) (rsh string) {
	t.Helper()
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		sshd = "/usr/sbin/sshd"
	}
	dir := filepath.Join(j.dir, "ssh")
	for _, folder := range []string{dir, "/run/sshd"} { // sshd needs the second
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, key := range []string{"host", "id"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file(key)).CombinedOutput(); err != nil {
			t.Skipf("create a key (Debian packages openssh-client, openssh-server): %v\n%s", err, out)
		}
	}
	for name, text := range map[string]string{
		"sshd": "HostKey " + file("host") + "\nAuthorizedKeysFile " + file("id.pub") + "\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n",
		"config": "Host *\n IdentityFile " + file("id") + "\n IdentitiesOnly yes\n UserKnownHostsFile " + file("known") +
			"\n StrictHostKeyChecking no\n LogLevel ERROR\n BatchMode yes\n",
	} {
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j.sshd = []string{sshd, "-f", file("sshd")}
	for _, h := range j.hosts.Hosts() {
		j.startSSH(t, h)
	}
	return "ssh -F " + file("config")
}

// startSSH starts the ssh server of a host. The end of the lab ends it.
func (j *job) startSSH(t *testing.T, host string) {
	t.Helper()
	if out, err := j.hosts.Command(t.Context(), host, j.sshd[0], j.sshd[1:]...).CombinedOutput(); err != nil {
		t.Skipf("sshd does not start here: %v\n%s", err, out)
	}
}

// survivors is a running job of storm survive.
type survivors struct {
	*job
	cmd   *exec.Cmd
	out   *lockedBuffer
	dir   string
	ended chan error
}

// survive starts the job, whose launcher runs on the last host.
func (j *job) survive(t *testing.T, rsh string, env ...string) *survivors {
	t.Helper()
	s := &survivors{job: j, out: new(lockedBuffer), dir: t.TempDir(), ended: make(chan error, 1)}
	hosts := strings.Join(j.ranks, ":4,") + ":4"
	s.cmd = j.hosts.Command(t.Context(), j.hosts.Hosts()[4], filepath.Join(j.dir, "muster"),
		"run", "--hosts", hosts, "--rsh", rsh, filepath.Join(j.dir, "storm"), "survive", "-dir", s.dir)
	s.cmd.Env = append(append(os.Environ(), "MUSTER_NETWORK=iwarp", "MUSTER_ON_FAILURE=return"), env...)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	s.await(t, "survive: begins with 16 ranks", 30*time.Second)
	return s
}

// await waits until the job has printed a text.
func (s *survivors) await(t *testing.T, text string, limit time.Duration) {
	t.Helper()
	for end := time.Now().Add(limit); !strings.Contains(s.out.String(), text); time.Sleep(5 * time.Millisecond) { // real processes
		select {
		case err := <-s.ended:
			t.Fatalf("the job has ended before %q: %v\n%s", text, err, s.out)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("no %q within %v:\n%s", text, limit, s.out)
		}
	}
}

// pids returns the processes of the job on a host, except the remote shell.
func (s *survivors) pids(t *testing.T, host string) (agents, ranks []int) {
	t.Helper()
	out, err := exec.Command("ip", "netns", "pids", host).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(out)) {
		pid, _ := strconv.Atoi(word)
		exe, err := os.Readlink("/proc/" + word + "/exe")
		if err != nil {
			continue
		}
		line, _ := os.ReadFile("/proc/" + word + "/cmdline")
		switch {
		case exe == filepath.Join(s.job.dir, "storm"):
			ranks = append(ranks, pid)
		case exe == filepath.Join(s.job.dir, "muster") && bytes.Contains(line, []byte("\x00agent")):
			agents = append(agents, pid)
		}
	}
	return agents, ranks
}

func (s *survivors) dir0() string { return s.job.dir }

// gone waits until no process of the job is left on a host.
func (s *survivors) gone(t *testing.T, host string, limit time.Duration) {
	t.Helper()
	s.goneBut(t, host, 0, limit)
}

// goneBut is gone except for a number of agents.
func (s *survivors) goneBut(t *testing.T, host string, keep int, limit time.Duration) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) { // real processes
		agents, ranks := s.pids(t, host)
		if len(ranks) == 0 && len(agents) == keep {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v the agents %v and the ranks %v still run on %s\n%s", limit, agents, ranks, host, s.out)
		}
	}
}

// shortFaults stops a rank for 5 s, and meanwhile cuts the cable of another host: with the
// default settings no rank fails. Then a host and the launcher are killed, whose connections
// the kernel closes.
func (j *job) shortFaults(t *testing.T, rsh string) {
	hosts := j.hosts.Hosts()
	s := j.survive(t, rsh)
	_, ranks := s.pids(t, hosts[1])
	if len(ranks) != 4 {
		t.Fatalf("the ranks %v run on %s, want 4", ranks, hosts[1])
	}
	noError(t, syscall.Kill(ranks[0], syscall.SIGSTOP))
	noError(t, j.hosts.Cut(hosts[3], 0))
	time.Sleep(5 * time.Second) // of a real network
	noError(t, j.hosts.Mend(hosts[3], 0))
	noError(t, syscall.Kill(ranks[0], syscall.SIGCONT))
	s.await(t, "survive: 1 pause", 30*time.Second)
	if strings.Contains(s.out.String(), "ranks left") || strings.Contains(s.out.String(), "was lost") {
		t.Fatalf("a rank or a host counts as failed:\n%s", s.out)
	}

	noError(t, j.hosts.Kill(hosts[3]))
	s.noticed(t, 12, time.Second)
	noError(t, s.cmd.Process.Kill())
	<-s.ended
	for _, h := range hosts {
		s.gone(t, h, 10*time.Second)
	}
	j.startSSH(t, hosts[3])
}

// lostHosts kills an agent, separates the ranks of a host from the others, then a host from
// the others and the launcher, and then the launcher from all, one after the other in one job.
func (j *job) lostHosts(t *testing.T, rsh string) {
	hosts := j.hosts.Hosts()
	s := j.survive(t, rsh, "MUSTER_PEER_TIMEOUT="+lostBound.String())
	var all []int
	for _, h := range hosts {
		_, ranks := s.pids(t, h)
		all = append(all, ranks...)
	}

	agents, _ := s.pids(t, hosts[3])
	if len(agents) != 1 {
		t.Fatalf("the agents %v run on %s, want 1", agents, hosts[3])
	}
	noError(t, syscall.Kill(agents[0], syscall.SIGKILL))
	s.noticed(t, 12, time.Second)
	s.gone(t, hosts[3], 10*time.Second)

	for _, rule := range []string{"-p tcp --sport 22 -j ACCEPT", "-p tcp --dport 22 -j ACCEPT", "-p tcp -j DROP", "-p udp -j DROP"} {
		args := append([]string{"-w", "-A", "INPUT"}, strings.Fields(rule)...)
		if out, err := j.hosts.Command(t.Context(), hosts[2], "iptables", args...).CombinedOutput(); err != nil {
			t.Fatalf("iptables: %v\n%s", err, out)
		}
	}
	s.noticed(t, 8, 2*lostBound)
	s.goneBut(t, hosts[2], 1, 10*time.Second)
	s.haveLeft(t, 8, "unreachable over the network")

	// The ranks of the host leave by themselves, before it is connected again.
	noError(t, j.hosts.Cut(hosts[1], 0))
	s.noticed(t, 4, lostBound)
	s.gone(t, hosts[1], 10*time.Second)
	s.haveLeft(t, 4, "heard nothing from muster run")
	noError(t, j.hosts.Mend(hosts[1], 0))

	noError(t, j.hosts.Cut(hosts[4], 0))
	noError(t, j.hosts.Kill(hosts[4]))
	<-s.ended
	s.gone(t, hosts[0], lostBound+10*time.Second)
	s.gone(t, hosts[2], 10*time.Second)
	s.haveLeft(t, 0, "heard nothing from muster run")
	if left := sharedFiles(t, all); len(all) != 16 || len(left) > 0 {
		t.Errorf("the ranks %v leave the files %q", all, left)
	}
	t.Logf("output:\n%s", s.out)
}

// haveLeft checks the errors of the four ranks of a host that count as failed.
func (s *survivors) haveLeft(t *testing.T, first int, why string) {
	t.Helper()
	for rank := first; rank < first+4; rank++ {
		text, _ := os.ReadFile(filepath.Join(s.dir, fmt.Sprint("error.", rank)))
		if !bytes.Contains(text, []byte("this rank counts as failed")) || !bytes.Contains(text, []byte(why)) {
			t.Errorf("rank %d, which counts as failed, leaves with %q, want %q", rank, text, why)
		}
	}
}

// noticed waits until the job continues with a number of ranks, and checks when the first of
// them got its error. A busy machine delays it.
func (s *survivors) noticed(t *testing.T, left int, bound time.Duration) {
	t.Helper()
	begin, text := time.Now(), fmt.Sprintf("survive: %d ranks left, noticed at ", left)
	s.await(t, text, bound+20*time.Second)
	var at int64
	_, rest, _ := strings.Cut(s.out.String(), text)
	fmt.Sscan(rest, &at)
	took := time.UnixMilli(at).Sub(begin)
	t.Logf("%d ranks left: error after %v, bound %v; they go on after %v", left, took.Round(time.Millisecond), bound, time.Since(begin).Round(time.Millisecond))
	if took > bound+3*time.Second {
		t.Errorf("the failure that leaves %d ranks is known after %v, want at most %v:\n%s", left, took, bound, s.out)
	}
}

// sharedFiles returns the files in shared memory that processes have left there.
func sharedFiles(t *testing.T, pids []int) (left []string) {
	t.Helper()
	for _, pid := range pids {
		names, err := filepath.Glob(fmt.Sprintf("/dev/shm/*-%d-*", pid))
		noError(t, err)
		left = append(left, names...)
	}
	return left
}

// lockedBuffer is an output that can be read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
