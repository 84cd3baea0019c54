package doctor

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// asProgram makes the test binary act as the program that the doctor starts.
const asProgram = "DOCTOR_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	if os.Args[1] == "answer" {
		if err := Answer(context.Background(), self(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(Role(os.Args[1], os.Stdin, os.Stdout))
}

func self() Config { return Config{Muster: "v-test", Self: []string{os.Args[0]}} }

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestGather(t *testing.T) {
	t.Setenv(asProgram, "1")
	f := Gather(bounded(t), self())
	host, _ := os.Hostname()
	switch {
	case f.Hostname != host, f.Muster != "v-test", f.OS != runtime.GOOS, f.Identity == "":
		t.Errorf("%+v", f)
	case !slices.ContainsFunc(f.Interfaces, func(i Interface) bool { return i.Loopback && i.MTU > 0 && len(i.Networks) > 0 }):
		t.Errorf("there is no loopback in %+v", f.Interfaces)
	case f.Threads < 1 || f.Threads > runtime.NumCPU():
		t.Errorf("%d threads, and Go sees %d", f.Threads, runtime.NumCPU())
	case f.Limits.Files == 0:
		t.Errorf("limits %+v", f.Limits)
	}
	if runtime.GOOS != "linux" {
		return
	}
	switch {
	case f.Ports.High <= f.Ports.Low || f.Ports.Error != "":
		t.Errorf("ports %+v", f.Ports)
	case f.Kernel == "" || f.Shared.Available <= 0:
		t.Errorf("kernel %q, memory %+v", f.Kernel, f.Shared)
	}
	// The system determines whether it is allowed, but it must have been tried.
	if e := f.ProcessVM.Error; e != "" && !strings.Contains(e, "process_vm_readv") {
		t.Errorf("process_vm was not tried: %s", e)
	}
}

func TestSurveyOfThisHost(t *testing.T) {
	t.Setenv(asProgram, "1")
	s, err := Plan{Config: self()}.Ask(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Hosts) != 1 || s.Hosts[0].Facts == nil || len(s.Trials) != 0 {
		t.Errorf("%+v", s)
	}
	for _, res := range Judge(s) {
		if res.Level() == Problem {
			t.Errorf("this host must have no problem: %+v", res)
		}
	}
}

// ask surveys this host and a second one, reached by the command.
func ask(t *testing.T, timeout time.Duration, words ...string) *Survey {
	t.Helper()
	t.Setenv(asProgram, "1")
	start := time.Now()
	s, err := Plan{Config: self(), Hosts: []string{"b"}, Timeout: timeout,
		Command: func(string) []string { return words }}.Ask(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > timeout+10*time.Second {
		t.Errorf("it took %v with a limit of %v for each step", took, timeout)
	}
	return s
}

func TestSurveyMergesThisHost(t *testing.T) {
	s := ask(t, 10*time.Second, os.Args[0], "answer")
	if len(s.Hosts) != 1 || s.Hosts[0].Name != "b" || !s.Hosts[0].Here || s.Hosts[0].Took <= 0 {
		t.Errorf("%+v", s.Hosts)
	}
}

func TestLoginShellOutputIsSkipped(t *testing.T) {
	s := ask(t, 10*time.Second, "sh", "-c", `echo "Welcome to b"; echo; exec "$0" answer`, os.Args[0])
	if len(s.Hosts) != 1 || s.Hosts[0].Name != "b" || s.Hosts[0].Error != "" {
		t.Errorf("%+v", s.Hosts)
	}
}

func TestUnreachableHost(t *testing.T) {
	for _, c := range []struct {
		what  string
		words []string
		want  string
	}{
		{"no remote shell", []string{"no-such-shell"}, "executable file not found"},
		{"an error of the remote shell", []string{"sh", "-c", "echo first >&2; echo 'b: Permission denied (publickey).' >&2; exit 255"}, "(exit status 255): b: Permission denied (publickey)."},
		{"long output of another program", []string{"sh", "-c", "yes hello | head -n 5000"}, "does not come from this version of muster"},
		{"short output of another program", []string{"echo", "hello"}, "ended without an answer: hello"},
		{"silence", []string{"sh", "-c", "exec sleep 60"}, "no answer in time"},
		{"silence after the greeting", []string{"sh", "-c", "echo '" + greeting + "'; exec sleep 60"}, "no answer in time to facts"},
		{"exit after the greeting", []string{"sh", "-c", "echo '" + greeting + "'; read question; echo oh >&2; exit 3"}, "the connection ended (exit status 3): oh"},
		{"nonsense after the greeting", []string{"sh", "-c", "echo '" + greeting + "'; read question; echo '<html>'; cat"}, "another version of muster"},
		{"no facts", []string{"sh", "-c", "echo '" + greeting + "'; read question; echo '{}'; cat"}, "no facts"},
		{"an error reply", []string{"sh", "-c", "echo '" + greeting + "'; read question; echo '{\"error\":\"what?\"}'; cat"}, "answers: what?"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := ask(t, time.Second, c.words...)
			if len(s.Hosts) != 2 || s.Hosts[0].Facts == nil || !strings.Contains(s.Hosts[1].Error, c.want) || s.Hosts[1].Facts != nil {
				t.Errorf("%+v", s.Hosts)
			}
			expect(t, s, "reach", Problem, "", " ")
		})
	}
}

func TestAnswer(t *testing.T) {
	in := strings.NewReader("nonsense\n{\"ask\":\"wine\"}\n{\"ask\":\"clock\"}\n")
	var out strings.Builder
	if err := Answer(bounded(t), self(), in, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 5 || lines[0] != greeting || !strings.Contains(lines[1], "invalid request") ||
		!strings.Contains(lines[2], `does not support the request \"wine\"`) || !strings.Contains(lines[3], `"clock":1`) {
		t.Errorf("%q", lines)
	}
}

// testTrialPorts opens ports on an address of this machine that is not loopback.
func testTrialPorts(t *testing.T) (*trialPorts, []Interface) {
	s := openTrialPorts(interfaces())
	t.Cleanup(s.close)
	if len(s.targets) == 0 {
		t.Skip("this machine has no address but loopback")
	}
	return s, nil // no own addresses, so that they are tried
}

func TestTryChecksTokens(t *testing.T) {
	s, own := testTrialPorts(t)
	good := s.targets[0]
	if got := try(bounded(t), "a", good, own); got.TCP != "" || got.Datagram != "" {
		t.Errorf("%+v", got)
	}
	wrong, fooled := good, good
	wrong.Token = strings.Repeat("X", tokenLen)
	fooled.Answer = strings.Repeat("Y", tokenLen)
	for _, p := range []Target{wrong, fooled} {
		if got := try(bounded(t), "a", p, own); got.TCP != "another program answers there" {
			t.Errorf("%+v", got)
		}
	}
	closed := good
	l, err := net.Listen("tcp", net.JoinHostPort(good.Address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	closed.TCP = l.Addr().(*net.TCPAddr).Port
	l.Close()
	if got := try(bounded(t), "a", closed, own); !strings.Contains(got.TCP, "refused") {
		t.Errorf("%+v", got)
	}
	if got := try(bounded(t), "a", good, interfaces()); !got.Own {
		t.Errorf("an own address was tried: %+v", got)
	}
}

func TestPortScan(t *testing.T) {
	s, own := testTrialPorts(t)
	p := s.targets[0]
	c, err := net.DialTimeout("tcp", net.JoinHostPort(p.Address, strconv.Itoa(p.TCP)), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: somebody\r\n\r\n")
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if answer, _ := io.ReadAll(c); len(answer) != 0 {
		t.Errorf("a client without the token gets %q", answer)
	}
	if got := try(bounded(t), "a", p, own); got.TCP != "" {
		t.Errorf("after a scan the target is not reached: %+v", got)
	}
}
