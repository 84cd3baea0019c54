//go:build !windows

package launch

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// The test binary is also the program that the jobs of these tests run: with roleEnv in
// the environment it is a rank.
const roleEnv = "LAUNCH_TEST_ROLE"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "agent" {
		if err := Agent(os.Stdin, os.Stdout); err != nil {
			os.Exit(complain(err))
		}
		os.Exit(0)
	}
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(playRank(role))
	}
	os.Exit(m.Run())
}

var rankRoles = map[string]func(c pmi.Client) int{
	"hello":       roleHello,
	"die":         roleDie,
	"stay":        roleStay,
	"linger":      roleLinger,
	"abort":       roleAbort,
	"nofinalize":  roleNoFinalize,
	"late-status": roleLateStatus,
	"leave-early": roleLeaveEarly,
	"cycle":       roleCycle,
	"away":        roleAway,
	"busy":        roleBusy,
	"lines":       roleLines,
	"binding":     roleBinding,
	"signals":     roleSignals,
	"cat":         roleCat,
	"sleep":       roleSleep,

	"second-fence": roleSecondFence, // of jobs that survive failures: outlive_test.go
	"unreachable":  roleUnreachable,
	"survive":      roleSurvive,
	"late-death":   roleLateDeath,

	"versions": roleHello, // the last rank has another version
	"settings": roleHello, // the last rank has another setting

	"babble":       nil,       // never joins, and sends an invalid request
	"foreign":      nil,       // never joins, and maps a file: foreign_test.go
	"never-joins":  roleHello, // the last rank does not join
	"never-fences": roleNeverFences,
}

func playRank(role string) int {
	if role == "never-joins" && os.Getenv(pmi.EnvRank) == "3" {
		time.Sleep(20 * time.Second) // until it is killed
	}
	if role == "babble" {
		fmt.Fprint(os.NewFile(pmiFD, "launcher"), "good morning\n")
		return 0
	}
	if role == "foreign" {
		return roleForeign()
	}
	c, err := pmi.Open(context.Background(), os.Getenv, roleTerms(role))
	if err != nil {
		return complain(err)
	}
	return rankRoles[role](c)
}

// roleTerms returns the terms of a rank.
func roleTerms(role string) pmi.Terms {
	last := os.Getenv(pmi.EnvRank) == "3"
	switch {
	case role == "second-fence" || role == "unreachable" || role == "survive" || role == "late-death":
		return survivingTerms
	case role == "versions" && last:
		return pmi.Terms{Protocol: 8, Version: "v8.0.0"}
	case role == "settings" && last:
		return pmi.Terms{Protocol: 7, Version: "v7.0.0", Settings: []pmi.Setting{{Name: "MUSTER_COLLECTIVE", Value: "bcast=chain"}}}
	}
	return pmi.Terms{Protocol: 7, Version: "v7.0.0"}
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 99
}

func leave(c pmi.Client) int {
	if err := c.Close(); err != nil {
		return complain(err)
	}
	return 0
}

func roleHello(c pmi.Client) int {
	ctx := context.Background()
	if err := c.Put("addr", fmt.Appendf(nil, "address of %d", c.Rank())); err != nil {
		return complain(err)
	}
	if err := c.Fence(ctx); err != nil {
		return complain(err)
	}
	for r := range c.Size() {
		got, err := c.Get(ctx, r, "addr")
		if err != nil || string(got) != fmt.Sprintf("address of %d", r) {
			return complain(fmt.Errorf("from %d: %q, %w", r, got, err))
		}
	}
	fmt.Printf("hello from %d of %d, local %d of %d\n", c.Rank(), c.Size(), c.LocalRank(), c.LocalSize())
	return leave(c)
}

// roleDie: the last rank exits as DIE specifies; the others wait for the failure on the
// board, as a message call does, print it and exit.
func roleDie(c pmi.Client) int {
	if err := c.Fence(context.Background()); err != nil {
		return complain(err)
	}
	if c.Rank() == c.Size()-1 {
		fmt.Fprintln(os.Stderr, "own message")
		if n, err := strconv.Atoi(os.Getenv("DIE")); err == nil {
			return n
		}
		killSelf()
		select {}
	}
	for c.Board().Deaths() == 0 {
		time.Sleep(time.Millisecond) // poll shared memory
	}
	d, _ := c.Board().Death(0)
	fmt.Printf("saw the failure of %d on %s: %s\n", d.Rank, d.Host, d.Status)
	return 3
}

// roleLinger: as roleDie, but each further rank takes longer to exit.
func roleLinger(c pmi.Client) int {
	if err := c.Fence(context.Background()); err != nil {
		return complain(err)
	}
	if c.Rank() == c.Size()-1 {
		return 7
	}
	for c.Board().Deaths() == 0 {
		time.Sleep(10 * time.Millisecond) // poll shared memory
	}
	time.Sleep(time.Duration(c.Rank()) * 20 * time.Millisecond) // a slow exit
	fmt.Printf("rank %d has noticed it\n", c.Rank())
	return 3
}

// roleStay: as roleDie, but the others neither poll the board nor react to signals.
func roleStay(c pmi.Client) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	if err := c.Fence(context.Background()); err != nil {
		return complain(err)
	}
	if c.Rank() == c.Size()-1 {
		return 5
	}
	time.Sleep(time.Minute) // until it is killed
	return 0
}

func roleAbort(c pmi.Client) int {
	if c.Rank() == 1 {
		c.Abort(42, "the input ends in line 7")
		return 1
	}
	err := c.Fence(context.Background())
	fmt.Println("fence:", err)
	return 3
}

func roleNoFinalize(c pmi.Client) int {
	if c.Rank() == 1 {
		return 0
	}
	err := c.Fence(context.Background())
	fmt.Println("fence:", err)
	return 3
}

// roleLeaveEarly: rank 1 exits without Finalize, the others leave in order, without waiting for it.
func roleLeaveEarly(c pmi.Client) int {
	if c.Rank() != 1 {
		leave(c)
	}
	return 0
}

func roleLateStatus(c pmi.Client) int {
	if c.Rank() == 1 {
		leave(c)
		return 6
	}
	time.Sleep(900 * time.Millisecond) // longer than the grace
	fmt.Println("finished my work")
	return leave(c)
}

// roleCycle: 0 waits for 1, 1 for 2, 2 for 0, 3 for 0, and 4 is in a collective.
func roleCycle(c pmi.Client) int {
	w := pmi.WaitState{Op: "Recv", Comm: "world", Tag: 7, Peer: int32((c.Rank() + 1) % 3)}
	switch c.Rank() {
	case 3:
		w.Peer = 0
	case 4:
		w = pmi.WaitState{Op: "Barrier", Comm: "world", Peer: pmi.PeerNone, Tag: pmi.TagNone}
	}
	if err := c.Fence(context.Background()); err != nil {
		return complain(err)
	}
	c.Board().Waiting(c.Rank(), w)
	time.Sleep(900 * time.Millisecond) // a wait of a real process
	c.Board().Running(c.Rank())
	return leave(c)
}

// roleAway: 0 waits for 1, which waits for 2, which sleeps, with the board calls of the
// engine.
func roleAway(c pmi.Client) int {
	if err := c.Fence(context.Background()); err != nil {
		return complain(err)
	}
	c.Board().MarkStarted(c.Rank())
	if c.Rank() < 2 {
		c.Board().Waiting(c.Rank(), pmi.WaitState{Op: "Recv", Comm: "world", Tag: 7, Peer: int32(c.Rank() + 1)})
	}
	time.Sleep(1500 * time.Millisecond) // a process that sleeps
	return leave(c)
}

// roleBusy: 0 waits for 1, which computes.
func roleBusy(c pmi.Client) int {
	if err := c.Fence(context.Background()); err != nil {
		return complain(err)
	}
	c.Board().MarkStarted(c.Rank())
	begin := time.Now()
	if c.Rank() == 0 {
		c.Board().Waiting(c.Rank(), pmi.WaitState{Op: "Recv", Comm: "world", Tag: 7, Peer: 1})
		time.Sleep(900 * time.Millisecond) // a wait of a real process
	}
	for time.Since(begin) < 900*time.Millisecond { // a computation of a real process
	}
	c.Board().Running(c.Rank())
	return leave(c)
}

func roleLines(c pmi.Client) int {
	out := bufio.NewWriterSize(os.Stdout, 1000) // splits lines at odd offsets
	for i := range 200 {
		fmt.Fprintf(out, "rank %d line %d %s\n", c.Rank(), i, strings.Repeat(strconv.Itoa(c.Rank()), 300))
	}
	fmt.Fprintf(out, "rank %d ends without newline", c.Rank())
	out.Flush()
	return leave(c)
}

func roleBinding(c pmi.Client) int {
	cores, _ := os.ReadFile("/proc/self/status")
	for line := range strings.SplitSeq(string(cores), "\n") {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			fmt.Printf("cores=%s ", strings.TrimSpace(list))
		}
	}
	fmt.Printf("procs=%d local=%s/%s job=%s\n", runtime.GOMAXPROCS(0),
		os.Getenv(pmi.EnvLocalRank), os.Getenv(pmi.EnvLocalSize), os.Getenv(pmi.EnvJob))
	return leave(c)
}

// roleSignals prints the signals that it gets, and ends after SIGTERM.
func roleSignals(c pmi.Client) int {
	got := make(chan os.Signal, 8)
	signal.Notify(got, userSignal, syscall.SIGINT, syscall.SIGTERM)
	fmt.Println("ready")
	for s := range got {
		fmt.Println("got", s)
		if s == syscall.SIGTERM {
			break
		}
	}
	return leave(c)
}

func roleCat(c pmi.Client) int {
	in, err := io.ReadAll(os.Stdin)
	fmt.Printf("read %d bytes, %v\n", len(in), err)
	return leave(c)
}

func roleSleep(c pmi.Client) int {
	fmt.Printf("of %s pid=%d.\n", os.Getenv("AGENT_OF"), os.Getpid())
	time.Sleep(20 * time.Second) // until it is killed
	return leave(c)
}

func roleNeverFences(c pmi.Client) int {
	if c.Rank() == 3 {
		time.Sleep(20 * time.Second) // until it is killed
	}
	return roleHello(c)
}

// helperLauncher starts a launcher in a separate process, so that a test can kill it. Its
// job runs the role "sleep" on the hosts.
func helperLauncher(t *testing.T, out io.Writer, hosts string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(self(t), "-test.run=^TestHelperLauncher$")
	cmd.Env = append(os.Environ(), "LAUNCH_TEST_HELPER="+hosts)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// belowAShell returns the arguments of a shell that runs this binary as a child process.
func belowAShell(t testing.TB) []string { return []string{"-c", `"$0"; true`, self(t)} }

// runAgent runs an agent with the given input and returns its status and stderr.
func runAgent(t *testing.T, input string) (status int, errOut string) {
	t.Helper()
	return runAgentWith(t, strings.NewReader(input))
}

// runAgentOpen is runAgent with an input that does not end.
func runAgentOpen(t *testing.T, input string) (status int, errOut string) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	if _, err := write.WriteString(input); err != nil {
		t.Fatal(err)
	}
	return runAgentWith(t, read)
}

func runAgentWith(t *testing.T, input io.Reader) (status int, errOut string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self(t), "agent")
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = input, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), errs.String()
}

// watched is an output that a test can wait for.
type watched struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

func (w *watched) await(t *testing.T, text string, times int) {
	t.Helper()
	if !poll(10*time.Second, time.Millisecond, func() bool { return strings.Count(w.String(), text) >= times }) {
		t.Fatalf("%q was not printed %d times; the output was\n%s", text, times, w)
	}
}

// poll calls cond at the given interval until it returns true or the time is over. It
// reports whether cond returned true.
func poll(limit, interval time.Duration, cond func() bool) bool {
	for end := time.Now().Add(limit); !cond(); time.Sleep(interval) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// jobRun is the result and output of a job.
type jobRun struct {
	Result
	out, err string
	took     time.Duration
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// runRole runs a role as a job. It keeps the fields set in cfg.
func runRole(t testing.TB, role string, cfg Config) jobRun {
	t.Helper()
	if cfg.Prog == "" {
		cfg.Prog = self(t)
	}
	// Without this, a program with the race detector takes a second to exit.
	cfg.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), cfg.Env...)
	cfg.ExtraEnv = append(cfg.ExtraEnv, roleEnv+"="+role)
	return runJob(t, cfg)
}

func runJob(t testing.TB, cfg Config) jobRun {
	t.Helper()
	var out, errOut watched
	if cfg.Output.Stdout == nil {
		cfg.Output.Stdout = &out
	}
	if cfg.Output.Stderr == nil {
		cfg.Output.Stderr = &errOut
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	start := time.Now()
	res, err := Run(ctx, cfg)
	if err != nil {
		t.Fatalf("the job did not start: %v", err)
	}
	return jobRun{res, out.String(), errOut.String(), time.Since(start)}
}

// endsWithin fails if a job takes longer than the limit each of three times. A busy machine
// may start or end processes late, but not always. run checks everything else.
func endsWithin(t *testing.T, limit time.Duration, run func() time.Duration) {
	t.Helper()
	var all []time.Duration
	for range 3 {
		took := run()
		if took <= limit {
			return
		}
		all = append(all, took)
	}
	t.Errorf("the job took %v to end; %v is allowed", all, limit)
}

func shell(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	return path
}
