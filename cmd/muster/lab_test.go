//go:build !windows

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

// labName returns an unused lab name and removes the lab when the test ends.
func labName(t *testing.T, letter string) string {
	t.Helper()
	if err := lab.Usable(); err != nil {
		t.Skip(err)
	}
	name := "cmd" + letter + strconv.Itoa(os.Getpid())
	t.Cleanup(func() {
		if slices.Contains(lab.Names(), name) {
			if err := lab.Remove(name); err != nil {
				t.Error(err)
			}
		}
	})
	return name
}

// must runs a command that has to succeed and returns its output.
func must(t *testing.T, args ...string) string {
	t.Helper()
	got := muster(t, t.TempDir(), args...)
	if got.status != 0 {
		t.Fatalf("muster %s: %+v", strings.Join(args, " "), got)
	}
	return got.out
}

// cables returns the table rows of a status, with one space between words.
func cables(t *testing.T, status string) []string {
	t.Helper()
	_, rest, _ := strings.Cut(status, "cable\n")
	table, _, found := strings.Cut(rest, "\n\n")
	if !found {
		t.Fatalf("the status has no table:\n%s", status)
	}
	lines := strings.Split(table, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return lines
}

func TestLabUpChangeDown(t *testing.T) {
	name := labName(t, "a")
	out := must(t, "lab", "up", "--name", name, "--hosts", "2", "--rails", "2", "--rate", "1gbit", "--loss", "1%")
	if !strings.HasPrefix(out, "lab "+name+": 2 hosts, 2 rails, MTU 1500\n") || !strings.Contains(out, "muster run --lab="+name+" -n 2 ./prog") {
		t.Errorf("up says\n%s", out)
	}
	for _, step := range []struct {
		do   string
		want []string
	}{
		{"", []string{"h1 0 0 10.61.0.1 1gbit 1% up", "1 10.61.1.1 1gbit 1% up", "h2 0 0 10.61.0.2 1gbit 1% up", "1 10.61.1.2 1gbit 1% up"}},
		{"loss all 0%", []string{"h1 0 0 10.61.0.1 1gbit - up", "1 10.61.1.1 1gbit - up", "h2 0 0 10.61.0.2 1gbit - up", "1 10.61.1.2 1gbit - up"}},
		{"rate h1 none", []string{"h1 0 0 10.61.0.1 - - up", "1 10.61.1.1 - - up", "h2 0 0 10.61.0.2 1gbit - up", "1 10.61.1.2 1gbit - up"}},
		{"rate h2 2.5gbit 1", []string{"h1 0 0 10.61.0.1 - - up", "1 10.61.1.1 - - up", "h2 0 0 10.61.0.2 1gbit - up", "1 10.61.1.2 2.5gbit - up"}},
		{"cut h1 1", []string{"h1 0 0 10.61.0.1 - - up", "1 10.61.1.1 - - cut", "h2 0 0 10.61.0.2 1gbit - up", "1 10.61.1.2 2.5gbit - up"}},
		{"cut --unplug h1 0", []string{"h1 0 0 10.61.0.1 - - unplugged", "1 10.61.1.1 - - cut", "h2 0 0 10.61.0.2 1gbit - up", "1 10.61.1.2 2.5gbit - up"}},
		{"mend all", []string{"h1 0 0 10.61.0.1 - - up", "1 10.61.1.1 - - up", "h2 0 0 10.61.0.2 1gbit - up", "1 10.61.1.2 2.5gbit - up"}},
		{"loss h1 0.5 0", []string{"h1 0 0 10.61.0.1 - 50% up", "1 10.61.1.1 - - up", "h2 0 0 10.61.0.2 1gbit - up", "1 10.61.1.2 2.5gbit - up"}},
	} {
		if step.do != "" {
			must(t, append([]string{"lab", "--name", name}, strings.Fields(step.do)...)...)
		}
		if got := cables(t, must(t, "lab", "status", "--name", name)); !slices.Equal(got, step.want) {
			t.Errorf("after %q the status is %q, want %q", step.do, got, step.want)
		}
	}
	var states []lab.Status
	if err := json.Unmarshal([]byte(must(t, "lab", "status", "--name", name, "--json")), &states); err != nil || len(states) != 1 || len(states[0].Hosts) != 2 {
		t.Errorf("as JSON: %+v, %v", states, err)
	}
	if out := must(t, "lab", "exec", "--name", name, "h2", "ip", "-brief", "addr", "show", "eth1"); !strings.Contains(out, "10.61.1.2/24") {
		t.Errorf("on h2 there is %q", out)
	}
	if out := must(t, "lab", "down", "--name", name); out != "lab "+name+" is removed\n" {
		t.Errorf("down says %q", out)
	}
}

func TestRunOnLab(t *testing.T) {
	name := labName(t, "b")
	must(t, "lab", "up", "--name", name, "--hosts", "3")
	address := `ip -brief addr show eth0 | sed 's|.* \(10[^/]*\)/.*|'$PMI_RANK' is on \1|'`
	for ranks, want := range map[string]string{
		"":  "0 is on 10.61.0.1, 1 is on 10.61.0.2, 2 is on 10.61.0.3",
		"5": "0 is on 10.61.0.1, 1 is on 10.61.0.1, 2 is on 10.61.0.2, 3 is on 10.61.0.2, 4 is on 10.61.0.3",
	} {
		args := []string{"run", "--lab=" + name, "--label=never"}
		if ranks != "" {
			args = append(args, "-n", ranks)
		}
		lines := strings.Split(strings.TrimSpace(must(t, append(args, "sh", "-c", address)...)), "\n")
		slices.Sort(lines)
		if got := strings.Join(lines, ", "); got != want {
			t.Errorf("with -n %q: %s; want %s", ranks, got, want)
		}
	}
	// Ranks that send each other messages find the network by themselves.
	must(t, "run", "--lab="+name, "-n", "6", "--env", asRank+"=well", selfPath(t))
}

func TestJobEndsWhenLabHostIsKilled(t *testing.T) {
	name := labName(t, "c")
	must(t, "lab", "up", "--name", name)
	ended := make(chan outcome, 1)
	go func() { ended <- muster(t, ".", "run", "--lab="+name, "sleep", "15") }()
	l, err := lab.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, 20*time.Millisecond, "a rank on h2", func() bool {
		s, err := l.Status()
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Hosts[1].Processes) >= 2 // an agent and a rank
	})
	must(t, "lab", "kill", "--name", name, "h2")
	got := <-ended
	if got.status == 0 || !strings.Contains(got.err, l.Hosts()[1]) {
		t.Errorf("the job must end with an error that names the host: %+v", got)
	}
}

func TestInterruptedLabUpRemovesLab(t *testing.T) {
	name := labName(t, "d")
	up := exec.CommandContext(t.Context(), selfPath(t), "lab", "up", "--name", name, "--hosts", "30", "--rate", "1gbit")
	up.Env = append(os.Environ(), asMuster+"=1", "GORACE=atexit_sleep_ms=0")
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, time.Millisecond, "the lab", func() bool { return slices.Contains(lab.Names(), name) })
	if err := up.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := up.Wait(); err == nil {
		t.Error("it ended well although it was interrupted")
	}
	if slices.Contains(lab.Names(), name) {
		t.Error("it has left a lab")
	}
}

func TestLabRejectsBadArguments(t *testing.T) {
	name := labName(t, "e")
	must(t, "lab", "up", "--name", name, "--hosts", "1")
	for want, args := range map[string][]string{
		`"` + name + `" is up already`:       {"lab", "up", "--name", name},
		`there is no lab "nosuch"; existing`: {"lab", "down", "--name", "nosuch"},
		`there is no lab "nosuch";`:          {"run", "--lab=nosuch", "true"},
		`use a small letter`:                 {"lab", "up", "--name", "No-such"},
		`--name is empty`:                    {"lab", "up", "--name", ""},
		`300 hosts: use 1 to 250`:            {"lab", "up", "--name", "nosuch", "--hosts", "300"},
		`rate "fast"`:                        {"lab", "up", "--name", "nosuch", "--rate", "fast"},
		`loss "much"`:                        {"lab", "up", "--name", "nosuch", "--loss", "much"},
		`loss "101%"`:                        {"lab", "loss", "--name", name, "h1", "101%"},
		`rate "1"`:                           {"lab", "rate", "--name", name, "h1", "1"},
		`there is no host "h2"`:              {"lab", "cut", "--name", name, "h2"},
		`no rail "1"`:                        {"lab", "cut", "--name", name, "h1", "1"},
		`--lab excludes --hosts`:             {"run", "--lab=" + name, "--hosts", "a", "true"},
		`for all hosts use muster run --lab`: {"lab", "exec", "--name", name, "all", "true"},
	} {
		got := muster(t, t.TempDir(), args...)
		if got.status != 2 || !strings.Contains(got.err, want) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("muster %s must be rejected in one line with %q: %+v", strings.Join(args, " "), want, got)
		}
	}
}

func TestLabReportsMissingToolsAndRights(t *testing.T) {
	t.Run("tools", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if got := muster(t, t.TempDir(), "lab", "up"); got.status != 2 || !strings.Contains(got.err, "there is no ip command") {
			t.Errorf("without ip: %+v", got)
		}
	})
	t.Run("rights", func(t *testing.T) {
		drop, err := exec.LookPath("setpriv")
		if err != nil || lab.Usable() != nil {
			t.Skip("needs root, and setpriv to drop capabilities")
		}
		cmd := exec.CommandContext(t.Context(), drop, "--bounding-set", "-all", "--inh-caps", "-all", selfPath(t), "lab", "up", "--name", "nosuch")
		cmd.Env = append(os.Environ(), asMuster+"=1", "GORACE=atexit_sleep_ms=0")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "needs root") {
			t.Errorf("without rights: %v, %s", err, out)
		}
	})
}

func TestLabHelp(t *testing.T) {
	out := must(t, "lab")
	for _, want := range []string{"muster lab up --hosts 4", "muster run --lab", "muster lab cut", "muster lab down"} {
		if !strings.Contains(out, want) {
			t.Errorf("the help does not show %q:\n%s", want, out)
		}
	}
	if page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", "testing.md")); err != nil {
		t.Error(err)
	} else {
		for _, c := range newLabCommand().Commands() {
			if !c.Hidden && !strings.Contains(string(page), "muster lab "+c.Name()) {
				t.Errorf("docs/guide/testing.md does not mention muster lab %s", c.Name())
			}
		}
	}
}
