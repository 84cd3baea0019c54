//go:build !windows

package launch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRanksExchangeAddresses(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		r := runRole(t, "hello", Config{Ranks: n, Output: Output{Label: LabelNever}})
		if r.Status != 0 || r.Cause != "" || r.err != "" {
			t.Errorf("%d ranks must end well: %+v", n, r)
		}
		for rank := range n {
			want := fmt.Sprintf("hello from %d of %d, local %d of %d\n", rank, n, rank, n)
			if strings.Count(r.out, want) != 1 {
				t.Errorf("%q must come once; the output was\n%s", want, r.out)
			}
		}
	}
}

func TestFailureEndsJob(t *testing.T) {
	for _, c := range []struct {
		die    string
		status int
		cause  string
	}{
		{"7", 7, "exit status 7"},
		{"SIGKILL", 137, "killed by SIGKILL"},
	} {
		endsWithin(t, slow*time.Second, func() time.Duration {
			r := runRole(t, "die", Config{Ranks: 4, Env: []string{"DIE=" + c.die}})
			if r.Status != c.status || !strings.HasPrefix(r.Cause, "rank 3 (pid ") || !strings.Contains(r.Cause, c.cause) {
				t.Errorf("failure by %s must give status %d and name rank 3: %+v", c.die, c.status, r.Result)
			}
			if strings.Count(r.out, "saw the failure of 3 on ") != 3 || strings.Count(r.out, c.cause) != 3 {
				t.Errorf("all others must see how rank 3 failed; they printed\n%s", r.out)
			}
			if !strings.HasSuffix(r.err, "muster: "+r.Cause+"\n") || !strings.Contains(r.err, "[3] own message\n") {
				t.Errorf("the cause must be the last line, after the rank's own output; stderr was\n%s", r.err)
			}
			return r.took
		})
	}
}

func TestUnresponsiveRanksAreKilled(t *testing.T) {
	endsWithin(t, slow*1200*time.Millisecond, func() time.Duration {
		r := runRole(t, "stay", Config{Ranks: 3})
		if r.Status != 5 || !strings.Contains(r.err, "killed ranks that did not exit by themselves: 2 of 3") {
			t.Errorf("the status must be that of the first, 5, and the report must count the killed ranks: %+v", r)
		}
		if r.took < 500*time.Millisecond {
			t.Errorf("the others have half a second; the job took %v", r.took)
		}
		return r.took
	})
}

func TestAbort(t *testing.T) {
	endsWithin(t, slow*time.Second, func() time.Duration {
		r := runRole(t, "abort", Config{Ranks: 3})
		if r.Status != 42 || !strings.Contains(r.Cause, "rank 1 ") || !strings.Contains(r.Cause, "the input ends in line 7") {
			t.Errorf("an abort must give its code and reason: %+v", r.Result)
		}
		if strings.Count(r.out, "rank 1 on ") != 2 {
			t.Errorf("the fences of the others must end with the abort:\n%s", r.out)
		}
		return r.took
	})
}

func TestExitWithoutFinalizeIsFailure(t *testing.T) {
	endsWithin(t, slow*time.Second, func() time.Duration {
		r := runRole(t, "nofinalize", Config{Ranks: 2})
		if r.Status != 1 || !strings.Contains(r.Cause, "rank 1 ") || !strings.Contains(r.Cause, "without calling Finalize") {
			t.Errorf("a rank that exits with status 0 and without Finalize has failed: %+v", r)
		}
		return r.took
	})
}

// With ExitLeaves a rank may exit without Finalize, unless others wait for it.
func TestExitLeaves(t *testing.T) {
	r := runRole(t, "nofinalize", Config{Ranks: 2, ExitLeaves: true})
	if r.Status == 0 || !strings.Contains(r.Cause, "rank 1 ") {
		t.Errorf("the others wait in a fence for the rank that has left: %+v", r)
	}
	r = runRole(t, "leave-early", Config{Ranks: 3, ExitLeaves: true})
	if r.Status != 0 || !strings.Contains(r.err, "rank 1 exited with status 0 without calling Finalize") {
		t.Errorf("nobody waits for the rank that has left: %+v", r)
	}
}

func TestExitWithoutJoiningFailsFence(t *testing.T) {
	// Rank 1 is a command that does not join the job.
	script := `if [ "$PMI_RANK" = 1 ]; then sleep "$PAUSE"; exit 0; fi; exec "$0"`
	for _, pause := range []string{"0", "0.3"} { // it exits before and after the fence is entered
		r := runJob(t, Config{Ranks: 2, Prog: shell(t), Args: []string{"-c", script, self(t)},
			Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0", roleEnv+"=hello", "PAUSE="+pause)})
		if r.Status == 0 || !strings.Contains(r.Cause, "rank 1 ") || r.took > slow*2*time.Second {
			t.Errorf("pause %s: a fence that rank 1 will never enter must end the job: %+v", pause, r)
		}
	}
}

func TestStatusAfterFinalize(t *testing.T) {
	r := runRole(t, "late-status", Config{Ranks: 2})
	if r.Status != 6 || !strings.Contains(r.out, "finished my work") {
		t.Errorf("the status of a finalized rank counts, and the others continue: %+v", r)
	}
}

func TestPlainCommands(t *testing.T) {
	sh := shell(t)
	for _, c := range []struct {
		script string
		status int
		out    string
	}{
		{"echo $PMI_RANK of $PMI_SIZE", 0, "[0] 0 of 2\n[1] 1 of 2\n"},
		{"test $PMI_RANK = 0", 1, ""},
		{"test $PMI_RANK = 0 || kill -ABRT $$", 134, ""},
		{"true", 0, ""},
	} {
		r := runJob(t, Config{Ranks: 2, Prog: sh, Args: []string{"-c", c.script}, Env: os.Environ(), Output: Output{Quiet: true}})
		lines := strings.SplitAfter(r.out, "\n")
		slices.Sort(lines)
		if got := strings.Join(lines, ""); r.Status != c.status || got != c.out || r.err != "" {
			t.Errorf("%q must give status %d and %q, and nothing else when quiet; got %d, %q, %q", c.script, c.status, c.out, r.Status, got, r.err)
		}
	}
}

func TestStartErrors(t *testing.T) {
	notExecutable := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(notExecutable, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"no ranks":       {Config{Ranks: 0, Prog: "/bin/true"}, "0 ranks"},
		"too many ranks": {Config{Ranks: 1 << 20, Prog: "/bin/true"}, "ranks"},
		"no program":     {Config{Ranks: 1}, "no program"},
		"missing":        {Config{Ranks: 2, Prog: "/no/such/program"}, "/no/such/program"},
		"not executable": {Config{Ranks: 2, Prog: notExecutable}, "permission denied"},
	} {
		if _, err := Run(t.Context(), c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error must contain %q: %v", name, c.want, err)
		}
	}
}

func TestLinesStayWhole(t *testing.T) {
	const n = 4
	r := runRole(t, "lines", Config{Ranks: n})
	whole := regexp.MustCompile(`^\[(\d)\] rank (\d) (line \d+ \d{300}|ends without newline)$`)
	count := map[string]int{}
	for line := range strings.SplitSeq(strings.TrimSuffix(r.out, "\n"), "\n") {
		m := whole.FindStringSubmatch(line)
		if m == nil || m[1] != m[2] {
			t.Fatalf("a line is not whole or has a wrong label: %.80q", line)
		}
		count[m[1]]++
	}
	for rank := range n {
		if got := count[fmt.Sprint(rank)]; got != 201 {
			t.Errorf("rank %d wrote 201 lines, %d arrived", rank, got)
		}
	}
}

func TestBackgroundProcessDoesNotDelayJob(t *testing.T) {
	r := runJob(t, Config{Ranks: 2, Prog: shell(t), Args: []string{"-c", "echo before; sleep 3 & exit 0"}, Env: os.Environ()})
	if r.Status != 0 || strings.Count(r.out, "before") != 2 || r.took > slow*2*time.Second {
		t.Errorf("a background process must not delay the launcher: %+v", r)
	}
}

func TestStdinGoesToRankZero(t *testing.T) {
	text := strings.Repeat("some input\n", 20000)
	path := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, cfg := range map[string]Config{
		"a reader": {Stdin: strings.NewReader(text)},
		"a file":   {Stdin: file},
		"nothing":  {},
	} {
		cfg.Ranks = 3
		r := runRole(t, "cat", cfg)
		want := len(text)
		if cfg.Stdin == nil {
			want = 0
		}
		if !strings.Contains(r.out, fmt.Sprintf("[0] read %d bytes, <nil>\n", want)) || strings.Count(r.out, "] read 0 bytes, <nil>\n") < 2 {
			t.Errorf("%s: rank 0 must read all %d bytes and the others none:\n%s", name, want, r.out)
		}
	}
}

// runSignalled runs a role, waits until all ranks are ready, and sends the signals.
func runSignalled(t *testing.T, role string, cfg Config, send ...syscall.Signal) jobRun {
	t.Helper()
	signals := make(chan os.Signal, 8)
	out := new(watched)
	cfg.Ranks, cfg.Signals, cfg.Output.Stdout = 2, signals, out
	go func() {
		out.await(t, "ready", 2)
		for _, s := range send {
			signals <- s
			time.Sleep(3 * sameKeystroke / 2) // apart enough to count as two
		}
	}()
	r := runRole(t, role, cfg)
	r.out = out.String()
	return r
}

func TestSignalsAreForwarded(t *testing.T) {
	r := runSignalled(t, "signals", Config{}, userSignal, syscall.SIGINT, syscall.SIGTERM)
	if r.Status != 0 || strings.Count(r.out, "got user defined signal 1") != 2 ||
		strings.Count(r.out, "got interrupt") != 2 || strings.Count(r.out, "got terminated") != 2 {
		t.Errorf("both ranks must get all three signals and end well: %+v", r)
	}
}

func TestSecondInterruptKills(t *testing.T) {
	r := runSignalled(t, "signals", Config{}, syscall.SIGINT, syscall.SIGINT)
	if r.Status != 130 || !strings.Contains(r.err, "interrupted twice") {
		t.Errorf("a second SIGINT must kill ranks that handle the first: %+v", r)
	}
}

func TestSimultaneousInterruptsCountOnce(t *testing.T) {
	signals := make(chan os.Signal, 2)
	out := new(watched)
	go func() {
		out.await(t, "ready", 2)
		signals <- syscall.SIGINT
		signals <- syscall.SIGINT
		out.await(t, "got interrupt", 2)
		signals <- syscall.SIGTERM
	}()
	if r := runRole(t, "signals", Config{Ranks: 2, Signals: signals, Output: Output{Stdout: out}}); r.Status != 0 || r.Cause != "" {
		t.Errorf("two SIGINT at the same moment are one: %+v", r)
	}
}

func TestInterruptWithoutHandler(t *testing.T) {
	signals := make(chan os.Signal, 1)
	time.AfterFunc(200*time.Millisecond, func() { signals <- syscall.SIGINT })
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("there is no sleep")
	}
	r := runJob(t, Config{Ranks: 2, Prog: sleep, Args: []string{"30"}, Env: os.Environ(), Signals: signals})
	if r.Status != 130 || r.Cause != "the job was ended by SIGINT" || r.took > slow*2*time.Second {
		t.Errorf("an interrupted job must report status 130 and SIGINT: %+v", r)
	}
}

func TestCancel(t *testing.T) {
	endsWithin(t, 2*time.Second, func() time.Duration {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		start := time.Now()
		var errOut bytes.Buffer
		res, err := Run(ctx, Config{Ranks: 2, Prog: shell(t), Args: []string{"-c", "sleep 30"}, Env: os.Environ(), Output: Output{Stderr: &errOut}})
		if err != nil || res.Status != 143 || !strings.Contains(errOut.String(), "cancelled") {
			t.Errorf("a cancelled job must end at once with status 143: %+v, %v\n%s", res, err, &errOut)
		}
		return time.Since(start)
	})
}

func TestStuckReport(t *testing.T) {
	// The ranks wait for 0.9 s. On a busy machine they begin apart or end late, and a report
	// has other figures or there is one more, so one of three jobs must be as expected.
	var problems []string
	for range 3 {
		if problems = stuckReportProblems(t); len(problems) == 0 {
			return
		}
	}
	t.Error(strings.Join(problems, "\n"))
}

func stuckReportProblems(t *testing.T) (problems []string) {
	t.Helper()
	r := runRole(t, "cycle", Config{Ranks: 5, Limits: Limits{Stuck: 300 * time.Millisecond}})
	for _, want := range []string{
		"muster: no progress for 0.",
		"rank 0 waits in Recv from 1 tag 7 on comm world for 0.",
		"ranks 2-3 wait in Recv from 0 tag 7 on comm world for 0.",
		"rank 4 waits in Barrier on comm world for 0.",
		"cycle: 0 waits for 1 waits for 2 waits for 0\n",
	} {
		if !strings.Contains(r.err, want) {
			problems = append(problems, fmt.Sprintf("the report must contain %q; it was\n%s", want, r.err))
		}
	}
	if n := strings.Count(r.err, "no progress for"); n < 1 || n > 2 {
		problems = append(problems, fmt.Sprintf("in 0.9 s there may be one or two reports at 0.3 s, not %d", n))
	}
	if r.Status != 0 {
		t.Errorf("a stuck job is reported, not ended: %+v", r.Result)
	}
	return problems
}

// With EndStuck the first report ends the job, unless a rank computes.
func TestStuckJobIsEnded(t *testing.T) {
	for _, hosts := range []string{"", "a:2,b:1"} {
		run := func(role string) jobRun {
			cfg := Config{Ranks: 3, Limits: Limits{Stuck: 200 * time.Millisecond, EndStuck: true}}
			if hosts == "" {
				return runRole(t, role, cfg)
			}
			return onHosts(t, role, hosts, cfg)
		}
		r := run("cycle")
		if r.Status != TimeoutStatus || !strings.Contains(r.Cause, "no progress for 0.") || !strings.Contains(r.Cause, "--on-stuck end") {
			t.Errorf("hosts %q: a stuck job must end with status %d and say why: %+v", hosts, TimeoutStatus, r)
		}
		if strings.Count(r.err, "which rank waits for which") != 1 || !strings.Contains(r.err, "cycle: 0 waits for 1 waits for 2 waits for 0\n") {
			t.Errorf("hosts %q: there must be one report:\n%s", hosts, r.err)
		}
		if r := run("busy"); r.Status != 0 {
			t.Errorf("hosts %q: a job with a rank that computes must go on: %+v", hosts, r)
		}
	}
}

func TestStuckReportOnDemandAndOff(t *testing.T) {
	r := runRole(t, "cycle", Config{Ranks: 3, Limits: Limits{Stuck: -1}})
	if r.err != "" {
		t.Errorf("switched off, there must be no report:\n%s", r.err)
	}
	r = runSignalled(t, "signals", Config{}, syscall.SIGQUIT, syscall.SIGTERM)
	if r.Status != 0 || !strings.Contains(r.err, "ranks 0-1 are not waiting") {
		t.Errorf("SIGQUIT must print the report and not affect the ranks: %+v", r)
	}
	r = runSignalled(t, "signals", Config{}, syscall.SIGQUIT, syscall.SIGQUIT)
	if r.Status != 2 || !strings.Contains(r.err, "SIGQUIT: quit") || !strings.Contains(r.err, "goroutine ") {
		t.Errorf("a second SIGQUIT must reach the ranks, which print their stacks: status %d\n%.300s", r.Status, r.err)
	}
}

func TestRankBindingAndEnv(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("binding is for Linux")
	}
	m := thisMachine()
	n := len(m.cores)
	if m.usable() < m.threads {
		t.Skipf("a cgroup quota of %v leaves %d of %d threads: nothing is bound by itself", m.quota, m.usable(), m.threads)
	}
	t.Setenv("GOMAXPROCS", "") // counts as not set
	bindings := func(cfg Config) []string {
		r := runRole(t, "binding", cfg)
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		slices.Sort(lines)
		return lines
	}
	lines := bindings(Config{Ranks: n, Output: Output{Label: LabelAlways}})
	seen := map[string]bool{}
	for rank, line := range lines {
		var cores string
		fmt.Sscanf(line[strings.Index(line, "cores="):], "cores=%s", &cores)
		if got := parseCPUList(cores); len(got) != len(m.cores[rank]) || seen[cores] {
			t.Errorf("with a core for each rank, each must have its own: %q", line)
		}
		seen[cores] = true
		if !strings.Contains(line, fmt.Sprintf("procs=%d local=%d/%d", m.threads/n, rank, n)) {
			t.Errorf("GOMAXPROCS must be the rank's share: %q", line)
		}
	}
	for _, line := range bindings(Config{Ranks: 2*n + 1}) {
		if fields := strings.Fields(line); len(parseCPUList(strings.TrimPrefix(fields[len(fields)-4], "cores="))) != m.threads || !strings.Contains(line, "procs=1 ") {
			t.Errorf("with more ranks than cores none is bound and each has one thread: %q", line)
		}
	}
	if line := bindings(Config{Ranks: 1, Env: []string{"GOMAXPROCS=3"}})[0]; !strings.Contains(line, "procs=3 ") {
		t.Errorf("a GOMAXPROCS of the user must be kept: %q", line)
	}
}

func TestRanksEndWithLauncher(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can kill a child with its parent")
	}
	for _, below := range []string{"", "below a shell"} {
		t.Setenv("LAUNCH_TEST_SHELL", below)
		out := new(watched)
		cmd := helperLauncher(t, out, "here")
		out.await(t, "pid=", 2)
		cmd.Process.Kill()
		cmd.Wait()
		awaitGone(t, pids(t, out.String()))
	}
}

// The launcher does not kill the child processes of a rank that has exited by itself.
func TestBackgroundProcessOutlivesLauncher(t *testing.T) {
	out := new(watched)
	r := runJob(t, Config{Ranks: 2, Prog: shell(t), Env: os.Environ(), Output: Output{Stdout: out},
		Args: []string{"-c", `sleep 20 >/dev/null 2>&1 & echo pid=$!.`}})
	if r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	for _, pid := range pids(t, out.String()) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Errorf("process %d, a child of a rank that has exited, was ended with the job: %v", pid, err)
		}
	}
}

// TestHelperLauncher is not a test: it is the launcher that other tests kill.
func TestHelperLauncher(t *testing.T) {
	hosts := os.Getenv("LAUNCH_TEST_HELPER")
	if hosts == "" {
		t.Skip("only a helper of tests that kill the launcher")
	}
	cfg := Config{Prog: self(t), Env: os.Environ(), ExtraEnv: []string{roleEnv + "=sleep"}, Output: Output{Stdout: os.Stdout, Stderr: os.Stderr}}
	if os.Getenv("LAUNCH_TEST_SHELL") != "" {
		cfg.Prog, cfg.Args = shell(t), belowAShell(t)
	}
	if hosts == "here" {
		cfg.Ranks = 2
	} else {
		cfg.Hosts, _ = ParseHosts(hosts)
		cfg.Remote.RSH = sameMachine(t)
		if config := os.Getenv("LAUNCH_TEST_SSH"); config != "" {
			cfg.Remote.RSH = append(strings.Fields(defaultRSH), "-F", config)
		}
	}
	Run(t.Context(), cfg)
}

func BenchmarkStartAndEnd(b *testing.B) {
	for _, n := range []int{2, 16, 64} {
		b.Run(fmt.Sprintf("ranks=%d", n), func(b *testing.B) {
			for b.Loop() {
				if r := runRole(b, "hello", Config{Ranks: n}); r.Status != 0 {
					b.Fatal(r)
				}
			}
		})
	}
}
