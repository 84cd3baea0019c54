//go:build !windows

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// asMuster makes the test binary act as the command.
const asMuster = "TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asRank) != "" {
		mpi.Main(chatter)
		return
	}
	if os.Getenv(asMuster) != "" {
		if benchmark := pacedBenchmark(os.Args[1:]); benchmark != nil {
			mpi.Main(benchmark)
			return
		}
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

type outcome struct {
	status   int
	out, err string
}

// muster runs the command as a process of its own, in dir.
func muster(t *testing.T, dir string, args ...string) outcome {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asMuster+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.WaitDelay = time.Second
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("typed\n"), &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

func TestRunCommand(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		out    string
	}{
		{[]string{"run", "-n", "1", "sh", "-c", "cat; echo $PMI_SIZE"}, 0, "typed\n1\n"},
		{[]string{"run", "-n", "2", "--label=never", "sh", "-c", "echo x"}, 0, "x\nx\n"},
		{[]string{"run", "-n", "1", "--label=always", "echo", "-n", "flags", "after", "-q"}, 0, "[0] flags after -q\n"},
		{[]string{"run", "-n2", "-q", "sh", "-c", "exit 9"}, 9, ""},
		{[]string{"run", "-n", "1", "--", "echo", "--", "x"}, 0, "-- x\n"},
	} {
		got := muster(t, t.TempDir(), c.args...)
		if got.status != c.status || got.out != c.out || got.err != "" {
			t.Errorf("muster %q must give status %d and print %q; got %+v", c.args, c.status, c.out, got)
		}
	}
}

// waitFor polls cond at the given interval, for at most a minute: the limit is only for a
// condition that never holds, so it is far above what a busy machine needs.
func waitFor(t *testing.T, interval time.Duration, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(interval) {
		if time.Now().After(end) {
			t.Fatalf("timeout while waiting for %s", what)
		}
	}
}

// A job is stopped and continued as one, with Ctrl-Z and fg.
func TestStopAndContinue(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "run", "-n", "2", "--label=never", "sh", "-c", "echo $$; exec sleep 300")
	cmd.Env = append(os.Environ(), asMuster+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill() // the ranks die with it
	var a, b int
	if _, err := fmt.Fscan(pipe, &a, &b); err != nil {
		t.Fatalf("the ranks did not print their process IDs: %v", err)
	}
	await := func(what string, stopped bool, pids ...int) {
		t.Helper()
		waitFor(t, 5*time.Millisecond, fmt.Sprintf("%s: launcher and ranks stopped: %v", what, stopped), func() bool {
			all := true
			for _, pid := range pids {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				if err != nil {
					t.Skipf("no /proc: %v", err)
				}
				all = all && strings.Contains(string(stat), ") T ") == stopped
			}
			return all
		})
	}
	cmd.Process.Signal(syscall.SIGTSTP)
	await("after Ctrl-Z", true, cmd.Process.Pid, a, b)
	time.Sleep(20 * time.Millisecond) // they must stay stopped: real signals, so real time
	await("20 ms later", true, a, b)
	cmd.Process.Signal(syscall.SIGCONT)
	await("after fg", false, cmd.Process.Pid, a, b)
}

func TestRunErrorsGiveAdvice(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"prog": 0o755, "data": 0o644, "main.go": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run"}, "muster run -n 4 ./prog"},
		{[]string{"run", "-n", "0", "./prog"}, "at least one rank"},
		{[]string{"run", "-n", "two", "./prog"}, "two"},
		{[]string{"run", "-n", "2", "prog"}, "did you mean ./prog?"},
		{[]string{"run", "-n", "2", "./data"}, "chmod +x ./data"},
		{[]string{"run", "-n", "2", "main.go"}, "go build"},
		{[]string{"run", "-n", "2", "."}, "is a directory"},
		{[]string{"run", "-n", "2", "no-such-program"}, "there is no program no-such-program"},
		{[]string{"run", "-n", "2", "./no-such-program"}, "there is no program ./no-such-program"},
		{[]string{"run", "--bind", "sockets", "./prog"}, "use auto, core, socket, numa or none"},
		{[]string{"run", "--label", "yes", "./prog"}, "use auto, always or never"},
		{[]string{"run", "--stuck-after", "-3s", "./prog"}, "0 for never"},
		{[]string{"run", "--on-stuck", "stop", "./prog"}, "use report or end"},
		{[]string{"run", "--stuck-after", "0", "--on-stuck", "end", "./prog"}, "needs a time"},
		{[]string{"run", "--grace", "-3s", "./prog"}, "give a time such as 5s"},
		{[]string{"run", "--such-flag", "./prog"}, "--such-flag"},
		{[]string{"rnu"}, "run"},
	} {
		got := muster(t, dir, c.args...)
		if got.status != 2 || !strings.HasPrefix(got.err, "muster: ") || !strings.Contains(got.err, c.want) || got.out != "" {
			t.Errorf("muster %q must fail with status 2 and print %q; got %+v", c.args, c.want, got)
		}
	}
}

func TestRootShowsHelp(t *testing.T) {
	got := muster(t, t.TempDir())
	if got.status != 0 || !strings.Contains(got.out, "muster run -n 8 ./prog") {
		t.Errorf("without arguments there must be help with examples: %+v", got)
	}
	for _, args := range [][]string{{"version"}, {"--version"}} {
		if got := muster(t, t.TempDir(), args...); got.status != 0 || !strings.HasPrefix(got.out, "muster ") || !strings.Contains(got.out, " go1.") {
			t.Errorf("muster %v must print the versions: %+v", args, got)
		}
	}
	if got := muster(t, t.TempDir(), "help", "run"); !strings.Contains(got.out, "--stuck-after") || !strings.Contains(got.out, "--grace") {
		t.Errorf("help must name the flags: %+v", got)
	}
}
