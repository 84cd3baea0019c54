//go:build !windows

package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
)

// sameMachine returns a remote command that runs the agent on this machine: hosts are
// only names, and a rank finds the name of its host in the environment.
func sameMachine(t testing.TB) []string {
	t.Helper()
	words, err := ParseRSH("env AGENT_OF={host}")
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// slow widens the time limits under the race detector: programs built with it start slowly.
var slow = func() time.Duration {
	if race.Enabled {
		return 4
	}
	return 1
}()

// soon is a time limit for operations that must not hang, on a busy machine.
var soon = slow * 10 * time.Second

// onHosts runs a role on hosts that are this machine.
func onHosts(t testing.TB, role, hosts string, cfg Config) jobRun {
	t.Helper()
	list, err := ParseHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Hosts = list
	if cfg.Remote.RSH == nil {
		cfg.Remote.RSH = sameMachine(t)
	}
	return runRole(t, role, cfg)
}

func TestRanksOnSeveralHosts(t *testing.T) {
	for _, c := range []struct {
		hosts  string
		ranks  int
		width  int
		counts []int
	}{
		{"a:2,b:2", 0, 0, []int{2, 2}},
		{"a:3,b:1,c:2", 5, 0, []int{3, 1, 1}},
		{"a,b", 5, 0, []int{3, 2}},
		{"a:2,b:2,c:2,d:2,e:2", 0, 1, []int{2, 2, 2, 2, 2}}, // a chain
		{"a,b,c,d,e,f,g", 0, 2, []int{1, 1, 1, 1, 1, 1, 1}},
	} {
		r := onHosts(t, "hello", c.hosts, Config{Ranks: c.ranks, Remote: Remote{TreeWidth: c.width}, Output: Output{Label: LabelNever}})
		if r.Status != 0 || r.Cause != "" || r.err != "" {
			t.Errorf("%s: the job must end well: %+v", c.hosts, r)
		}
		size, rank := 0, 0
		for _, n := range c.counts {
			size += n
		}
		for _, n := range c.counts {
			for local := range n {
				want := fmt.Sprintf("hello from %d of %d, local %d of %d\n", rank, size, local, n)
				if strings.Count(r.out, want) != 1 {
					t.Errorf("%s: %q must come once; the output was\n%s", c.hosts, want, r.out)
				}
				rank++
			}
		}
	}
}

func TestRemoteOutput(t *testing.T) {
	r := onHosts(t, "lines", "a:2,b:2,c:2", Config{Remote: Remote{TreeWidth: 1}})
	if r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	next := map[int]int{}
	for _, line := range lines {
		var label, rank, n int
		if k, _ := fmt.Sscanf(line, "[%d] rank %d line %d ", &label, &rank, &n); k == 3 && label == rank && n == next[rank] &&
			strings.HasSuffix(line, strings.Repeat(strconv.Itoa(rank), 300)) {
			next[rank]++
		} else if !strings.Contains(line, "ends without newline") {
			t.Fatalf("a line is torn, mixed or out of order: %.80q", line)
		}
	}
	for rank := range 6 {
		if next[rank] != 200 {
			t.Errorf("rank %d wrote 200 lines, %d arrived", rank, next[rank])
		}
	}
}

func TestRemoteFailureIsReported(t *testing.T) {
	r := onHosts(t, "die", "a:2,b:1,c:1", Config{Remote: Remote{TreeWidth: 1}, ExtraEnv: []string{"DIE=7"}})
	if r.Status != 7 || !strings.HasPrefix(r.Cause, "rank 3 (pid ") || !strings.Contains(r.Cause, " on c): exit status 7") {
		t.Errorf("the cause must name rank, host and status: %+v", r.Result)
	}
	if strings.Count(r.out, "saw the failure of 3 on c: exit status 7") != 3 {
		t.Errorf("all ranks of all hosts must see the failure; they printed\n%s", r.out)
	}
	if r.took > soon {
		t.Errorf("the job took %v to end", r.took)
	}
}

func TestRemoteUnresponsiveRanksAreKilled(t *testing.T) {
	r := onHosts(t, "stay", "a:2,b:1", Config{})
	if r.Status != 5 || !strings.Contains(r.err, "killed ranks that did not exit by themselves: 2 of 3") || r.took > soon {
		t.Errorf("ranks that ignore signals must be killed on every host: %+v", r)
	}
}

func TestRemoteAbort(t *testing.T) {
	r := onHosts(t, "abort", "a:1,b:1,c:1", Config{})
	if r.Status != 42 || !strings.Contains(r.Cause, "rank 1 ") || !strings.Contains(r.Cause, "the input ends in line 7") {
		t.Errorf("an abort must give its code and reason: %+v", r.Result)
	}
	if strings.Count(r.out, "rank 1 on b") != 2 {
		t.Errorf("the fences of the others must end with the abort:\n%s", r.out)
	}
}

func TestRemoteStdin(t *testing.T) {
	text := strings.Repeat("some input\n", 200000) // more than a window
	r := onHosts(t, "cat", "a:1,b:2", Config{Stdin: strings.NewReader(text)})
	if r.Status != 0 || !strings.Contains(r.out, fmt.Sprintf("[0] read %d bytes, <nil>\n", len(text))) || strings.Count(r.out, "] read 0 bytes, <nil>\n") != 2 {
		t.Errorf("rank 0 must read all %d bytes and the others none: %+v", len(text), r)
	}
}

func TestRemoteUnreadStdin(t *testing.T) {
	r := onHosts(t, "hello", "a:1,b:1", Config{Stdin: strings.NewReader(strings.Repeat("x", 4<<20))})
	if r.Status != 0 || strings.Count(r.out, "hello from") != 2 || r.took > soon {
		t.Errorf("input that rank 0 does not read must not delay the others: %+v", r.Result)
	}
}

func TestRemoteSignals(t *testing.T) {
	signals := make(chan os.Signal, 8)
	out := new(watched)
	go func() {
		out.await(t, "ready", 3)
		for _, s := range []syscall.Signal{userSignal, syscall.SIGINT, syscall.SIGTERM} {
			signals <- s
			time.Sleep(3 * sameKeystroke / 2) // apart enough to count as two
		}
	}()
	r := onHosts(t, "signals", "a:1,b:1,c:1", Config{Signals: signals, Output: Output{Stdout: out}, Remote: Remote{TreeWidth: 1}})
	for _, want := range []string{"got user defined signal 1", "got interrupt", "got terminated"} {
		if strings.Count(out.String(), want) != 3 {
			t.Errorf("each rank must print %q:\n%s", want, out)
		}
	}
	if r.Status != 0 {
		t.Errorf("ranks that handle the signals must succeed: %+v", r)
	}
}

func TestRemoteStuckReport(t *testing.T) {
	r := onHosts(t, "cycle", "a:2,b:2,c:1", Config{Limits: Limits{Stuck: 300 * time.Millisecond}, Remote: Remote{TreeWidth: 1}})
	for _, want := range []string{
		"muster: no progress for 0.",
		"rank 0 waits in Recv from 1 tag 7 on comm world for ",
		"ranks 2-3 wait in Recv from 0 tag 7 on comm world for ",
		"rank 4 waits in Barrier on comm world for ",
		"cycle: 0 waits for 1 waits for 2 waits for 0\n",
	} {
		if !strings.Contains(r.err, want) {
			t.Errorf("the report must contain %q; it was\n%s", want, r.err)
		}
	}
	if r.Status != 0 {
		t.Errorf("a stuck job is reported, not ended: %+v", r.Result)
	}
}

func TestRemoteStuckReportOfAwayRank(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	r := onHosts(t, "away", "a:2,b:1", Config{Limits: Limits{Stuck: 500 * time.Millisecond}, Prog: shell(t), Args: belowAShell(t)})
	for _, want := range []string{
		`no progress for \d`,
		`rank 0 waits in Recv from 1 tag 7 on comm world for \d`,
		`rank 1 waits in Recv from 2 tag 7 on comm world for \d`,
		`rank 2 has not been in an MPI call for [^\n]* s: it sleeps \(pid \d+ on b\)`,
		`rank 2 blocks all others, directly or through other ranks`,
	} {
		if !regexp.MustCompile(want).MatchString(r.err) {
			t.Errorf("the report must match %q; it was\n%s", want, r.err)
		}
	}
}

func TestAgentNotices(t *testing.T) {
	r := onHosts(t, "babble", "a:1,b:1", Config{})
	for rank, host := range []string{"a", "b"} {
		if want := fmt.Sprintf(`muster: host %s: rank %d: pmi: rank %d sent "good morning"`, host, rank, rank); !strings.Contains(r.err, want) {
			t.Errorf("the agent on %s must report %q: %s", host, want, r.err)
		}
	}
}

func TestRemoteEnvironment(t *testing.T) {
	t.Setenv("NOT_FOR_OTHERS", "here")
	// The shell clears the environment, as a login on another machine does.
	rsh, err := ParseRSH("env -i AGENT_OF={host}")
	if err != nil {
		t.Fatal(err)
	}
	hosts, _ := ParseHosts("a,b")
	script := `echo "$AGENT_OF $MUSTER_FOO $LD_LIBRARY_PATH $GOFLAG $ADDED ${NOT_FOR_OTHERS-unset} $PMI_RANK $PWD"`
	r := runJob(t, Config{Hosts: hosts, Remote: Remote{RSH: rsh}, Prog: "sh", Args: []string{"-c", script}, Output: Output{Label: LabelNever},
		Env:      append(os.Environ(), "MUSTER_FOO=foo", "LD_LIBRARY_PATH=lib", "GOFLAG=go"),
		ExtraEnv: []string{"ADDED=a b"}})
	dir, _ := os.Getwd()
	for rank, host := range []string{"a", "b"} {
		if want := fmt.Sprintf("%s foo lib go a b unset %d %s\n", host, rank, dir); !strings.Contains(r.out, want) {
			t.Errorf("the rank on %s must print %q: %+v", host, want, r)
		}
	}
}

// failsToStart runs a job that cannot be started and returns the error.
func failsToStart(t *testing.T, cfg Config, atMost time.Duration) string {
	t.Helper()
	if cfg.Prog == "" {
		cfg.Prog = "true"
	}
	cfg.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	start := time.Now()
	_, err := Run(t.Context(), cfg)
	if err == nil {
		t.Fatal("the job must not start")
	}
	if took := time.Since(start); took > atMost {
		t.Errorf("the error came after %v, %v is allowed: %v", took, atMost, err)
	}
	return err.Error()
}

func TestUnreachableHost(t *testing.T) {
	script := `if [ "$1" = b ]; then printf "a %s\n" banner >&2; echo "ssh: connect to host b port 22: No route to host" >&2; exit 255; fi; shift; exec "$@"`
	got := failsToStart(t, Config{Hosts: []Host{{"a", 1}, {"b", 1}}, Remote: Remote{RSH: []string{"sh", "-c", script, "sh", "{host}"}}}, soon)
	for _, want := range []string{"host b: ", "exit status 255", "ssh: connect to host b port 22: No route to host"} {
		if !strings.Contains(got, want) {
			t.Errorf("the error must contain %q: %s", want, got)
		}
	}
	if strings.Contains(got, "a banner") {
		t.Errorf("the last line is enough: %s", got)
	}
}

func TestUnreachableHostInTree(t *testing.T) {
	script := `if [ "$1" = d ]; then echo "no such host" >&2; exit 255; fi; shift; exec "$@"`
	got := failsToStart(t, Config{Hosts: []Host{{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}}, Remote: Remote{TreeWidth: 1, RSH: []string{"sh", "-c", script, "sh", "{host}"}}}, soon)
	if !strings.Contains(got, "host d: ") || !strings.Contains(got, "no such host") {
		t.Errorf("the error must name host d and its last line on stderr: %s", got)
	}
}

func TestUnreachableHostIsRetried(t *testing.T) {
	up := filepath.Join(t.TempDir(), "up")
	script := `if [ "$1" = b ] && [ ! -e "` + up + `" ]; then touch "` + up + `"; echo "Name or service not known" >&2; exit 255; fi; shift; exec "$@"`
	rsh := []string{"sh", "-c", script, "sh", "{host}"}
	r := onHosts(t, "hello", "a:1,b:1", Config{Remote: Remote{RSH: rsh, Retry: true}})
	if r.Status != 0 || strings.Count(r.out, "hello from") != 2 {
		t.Errorf("a host that ssh reaches the second time is not unreachable: %+v", r)
	}
	never := []string{"sh", "-c", "exit 255", "{host}"}
	got := failsToStart(t, Config{Hosts: []Host{{"a", 1}}, Remote: Remote{RSH: never, Retry: true}, Limits: Limits{Start: 2 * time.Second}}, soon)
	if !strings.Contains(got, "exit status 255") {
		t.Errorf("after the time limit the error must be reported: %s", got)
	}
}

func TestMissingRemoteShell(t *testing.T) {
	got := failsToStart(t, Config{Hosts: []Host{{"a", 1}}, Remote: Remote{RSH: []string{"no-such-shell"}}}, soon)
	if !strings.Contains(got, "host a: ") || !strings.Contains(got, "no-such-shell") || !strings.Contains(got, "--rsh") {
		t.Errorf("the error must name the command and the flag: %s", got)
	}
}

func TestMissingAgent(t *testing.T) {
	got := failsToStart(t, Config{Hosts: []Host{{"a", 1}}, Remote: Remote{AgentPath: "/no/such/muster", RSH: sameMachine(t)}}, soon)
	if !strings.Contains(got, "host a: ") || !strings.Contains(got, "/no/such/muster") || !strings.Contains(got, "--agent-path") {
		t.Errorf("the error must name the path and the flag: %s", got)
	}
}

func TestLoginShellBanner(t *testing.T) {
	rsh := []string{"sh", "-c", `printf 'Welcome to %s\nno newline at the end' "$1"; shift; exec "$@"`, "sh", "{host}"}
	r := onHosts(t, "hello", "a:1,b:1", Config{Remote: Remote{RSH: rsh}})
	if r.Status != 0 || strings.Count(r.out, "hello from") != 2 || strings.Contains(r.out, "Welcome") {
		t.Errorf("output of a shell before the agent must be ignored: %+v", r)
	}
}

func TestOutputInsteadOfAgent(t *testing.T) {
	for script, want := range map[string]string{
		`echo "This account is not available."`: `This account is not available.`,
		`yes "noise without end"`:               "no agent answered",
	} {
		got := failsToStart(t, Config{Hosts: []Host{{"a", 1}}, Remote: Remote{RSH: []string{"sh", "-c", script, "{host}"}}}, soon)
		if !strings.Contains(got, "host a: ") || !strings.Contains(got, want) {
			t.Errorf("the error must show %q: %s", want, got)
		}
	}
}

func TestAgentOfOtherVersionOrJob(t *testing.T) {
	for answer, want := range map[string]string{
		`muster-agent 99 $key`:                               "uses version 99",
		fmt.Sprintf("muster-agent %d 0000", protocolVersion): "key of another job",
	} {
		script := `read -r line; key=${line##* }; echo "` + answer + `"; sleep 20`
		got := failsToStart(t, Config{Hosts: []Host{{"a", 1}}, Remote: Remote{RSH: []string{"sh", "-c", script, "{host}"}}}, soon)
		if !strings.Contains(got, "host a: ") || !strings.Contains(got, want) {
			t.Errorf("an agent that answers %q must be rejected with %q: %s", answer, want, got)
		}
	}
}

func TestRemoteMissingDirectoryAndProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "only-here")
	got := failsToStart(t, Config{Hosts: []Host{{"a", 1}, {"b", 1}}, Remote: Remote{RSH: sameMachine(t)}, Dir: dir}, soon)
	if !strings.Contains(got, "no directory "+dir) || !regexp.MustCompile(`host [ab]: `).MatchString(got) {
		t.Errorf("the error must name host and directory: %s", got)
	}
	for _, prog := range []string{"no-such-program", "./no-such-program"} {
		got = failsToStart(t, Config{Hosts: []Host{{"a", 1}}, Remote: Remote{RSH: sameMachine(t)}, Prog: prog}, soon)
		if !strings.Contains(got, "host a: ") || !strings.Contains(got, "no-such-program") {
			t.Errorf("the error must name host and program: %s", got)
		}
	}
}

func TestRemoteStartTimeout(t *testing.T) {
	never := []string{"sh", "-c", `if [ "$1" = b ]; then exec sleep 20; fi; shift; exec "$@"`, "sh", "{host}"}
	got := failsToStart(t, Config{Hosts: []Host{{"a", 2}, {"b", 2}}, Remote: Remote{RSH: never}, Limits: Limits{Start: 500 * time.Millisecond}}, soon)
	if !strings.Contains(got, `stage "starting agents"`) || !strings.Contains(got, "no answer from b;") {
		t.Errorf("the error must name the stage and the host: %s", got)
	}
	for role, want := range map[string]string{
		"never-joins":  `in the stage "ranks joining"; missing: rank 3 on b;`,
		"never-fences": `in the stage "fence"; missing: rank 3 on b;`,
	} {
		// Long enough for the other ranks to start on a busy machine.
		r := onHosts(t, role, "a:2,b:2", Config{Limits: Limits{Start: slow * 2 * time.Second}})
		if r.Status != 1 || !strings.Contains(r.Cause, want) || r.took > soon {
			t.Errorf("%s: the cause must contain %q: %+v", role, want, r.Result)
		}
	}
}

func TestInterruptDuringStart(t *testing.T) {
	signals := make(chan os.Signal, 1)
	time.AfterFunc(200*time.Millisecond, func() { signals <- syscall.SIGINT })
	r := runJob(t, Config{Hosts: []Host{{"a", 1}}, Remote: Remote{RSH: []string{"sh", "-c", "sleep 30", "{host}"}}, Prog: "true", Signals: signals})
	if r.Status != 130 || !strings.Contains(r.Cause, "interrupted by SIGINT") || r.took > soon {
		t.Errorf("an interrupt must end a job that is being started: %+v", r)
	}
}

// pids returns the process IDs that ranks have printed as "pid=1234.".
func pids(t *testing.T, out string) (list []int) {
	t.Helper()
	for _, m := range regexp.MustCompile(`pid=(\d+)\.`).FindAllStringSubmatch(out, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// awaitGone waits until processes have exited.
func awaitGone(t *testing.T, list []int) {
	t.Helper()
	for _, pid := range list {
		gone := poll(5*time.Second, 5*time.Millisecond, func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
		if !gone {
			syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d still runs", pid)
		}
	}
}

// parentOf returns the ID of the parent process from /proc.
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	n, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestKilledAgent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc, and only Linux can kill a child with its parent")
	}
	for _, width := range []int{2, 1, 0} { // b is reached from the launcher, or through a; the ranks are below a shell
		out := new(watched)
		cfg := Config{Remote: Remote{TreeWidth: width}, Output: Output{Stdout: out}}
		if width == 0 {
			cfg.Prog, cfg.Args = shell(t), belowAShell(t)
		}
		go func() {
			out.await(t, "pid=", 4)
			for line := range strings.SplitSeq(out.String(), "\n") {
				if strings.Contains(line, "of b") {
					agent := parentOf(t, pids(t, line)[0])
					if width == 0 {
						agent = parentOf(t, agent)
					}
					syscall.Kill(agent, syscall.SIGKILL)
					return
				}
			}
		}()
		r := onHosts(t, "sleep", "a:2,b:2", cfg)
		if r.Status != 1 || !strings.Contains(r.Cause, "host b was lost, with ranks 2-3: its agent ended: killed by SIGKILL") {
			t.Errorf("width %d: the cause must name the host, its ranks and how the agent ended: %+v", width, r)
		}
		if r.took > soon {
			t.Errorf("width %d: it took %v", width, r.took)
		}
		awaitGone(t, pids(t, out.String()))
	}
}

func TestRemoteRanksEndWithLauncher(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	for _, below := range []string{"", "below a shell"} {
		t.Setenv("LAUNCH_TEST_SHELL", below)
		out := new(watched)
		cmd := helperLauncher(t, out, "a:1,b:1,c:1")
		out.await(t, "pid=", 3)
		cmd.Process.Kill()
		cmd.Wait()
		awaitGone(t, pids(t, out.String()))
	}
}

func TestUnresponsiveHostIsLost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	out := new(watched)
	stopped := make(chan int, 1)
	go func() {
		out.await(t, "pid=", 2)
		for line := range strings.SplitSeq(out.String(), "\n") {
			if strings.Contains(line, "of b") {
				agent := parentOf(t, pids(t, line)[0])
				syscall.Kill(agent, syscall.SIGSTOP)
				stopped <- agent
			}
		}
	}()
	r := onHosts(t, "sleep", "a:1,b:1", Config{Output: Output{Stdout: out}, Remote: Remote{pingEvery: 50 * time.Millisecond}})
	if r.Status != 1 || !strings.Contains(r.Cause, "host b was lost, with rank 1: it has not answered for 0.3 s") {
		t.Errorf("a host that does not answer must be reported as lost: %+v", r)
	}
	syscall.Kill(<-stopped, syscall.SIGKILL)
	awaitGone(t, pids(t, out.String()))
}

func TestAgentRejectsBadGreeting(t *testing.T) {
	for input, want := range map[string]string{
		"":                             "is started by muster run",
		"GET / HTTP/1.1\r\n\r\n":       "GET / HTTP/1.1",
		strings.Repeat("x", 100000):    "is started by muster run",
		"muster-job 1 0123456789abc\n": "install the same muster on all hosts",
		"muster-job 2 \n":              "is started by muster run",
	} {
		status, errOut := runAgent(t, input)
		if status == 0 || !strings.Contains(errOut, want) {
			t.Errorf("an agent with the input %.30q must exit with %q: status %d, %s", input, want, status, errOut)
		}
	}
}
