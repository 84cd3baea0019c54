//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// here is a remote command that runs the agent on this machine.
const here = "env ON={host}"

func TestRunOnHosts(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hosts")
	if err := os.WriteFile(file, []byte("# two hosts\nh1 slots=1\nh2.some.domain:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `echo "$PMI_RANK/$PMI_SIZE on $ON"`
	for name, args := range map[string][]string{
		"a list":          {"--hosts", "h1:1,h2.some.domain:2", "--rsh", here},
		"a list and -n":   {"--hosts", "h1,h2.some.domain:4", "-n", "3", "--rsh", here},
		"a file":          {"--hostfile", file, "--rsh", here},
		"a chain":         {"--hostfile", file, "--rsh", here, "--tree-width", "1"},
		"an agent's path": {"--hostfile", file, "--rsh", here, "--agent-path", selfPath(t)},
	} {
		args = append(append([]string{"run", "--label=never"}, args...), "sh", "-c", script)
		got := muster(t, dir, args...)
		for _, want := range []string{"0/3 on h1\n", "1/3 on h2.some.domain\n", "2/3 on h2.some.domain\n"} {
			if got.status != 0 || got.err != "" || strings.Count(got.out, want) != 1 {
				t.Errorf("%s: %q must come once: %+v", name, want, got)
			}
		}
	}
	// The host files of other launchers apply if no flag is given.
	for _, variable := range hostfileVariables {
		t.Setenv(variable, file)
		if got := muster(t, dir, "run", "--rsh", here, "sh", "-c", script); got.status != 0 || strings.Count(got.out, "/3 on ") != 3 {
			t.Errorf("the file that %s names must be used: %+v", variable, got)
		}
		if got := muster(t, dir, "run", "--rsh", here, "--hosts", "x", "sh", "-c", script); !strings.Contains(got.out, "0/1 on x") {
			t.Errorf("--hosts must override %s: %+v", variable, got)
		}
		t.Setenv(variable, "")
	}
}

// A benchmark takes into account that its ranks are on several hosts.
func TestBenchByNodesOnHosts(t *testing.T) {
	on := []string{"run", "--label=never", "--hosts", "h1:2,h2:1", "--rsh", here, selfPath(t), "bench"}
	for _, what := range [][]string{{"allgather", "node-bruck"}, {"ialltoall", "node-carriers"}, {"gather", "node-direct"}} {
		got := muster(t, t.TempDir(), append(on, what[0], "-i", "10", "--sizes", "8", "--json", "--algorithm", what[1])...)
		if got.status != 0 || !strings.Contains(got.out, `"protocol":"`+what[1]+`"`) {
			t.Errorf("bench %s by %s on two hosts gave %+v", what[0], what[1], got)
		}
	}
	for algorithm, why := range map[string]string{
		"segment":           "is not possible among 3 ranks on 2 nodes: the ranks are on several nodes",
		"neighbor-exchange": "is not possible among 3 ranks on 2 nodes: the number of ranks is odd",
	} {
		if got := muster(t, t.TempDir(), append(on, "allgather", "-i", "10", "--sizes", "8", "--algorithm", algorithm)...); got.status == 0 || !strings.Contains(got.err, why) {
			t.Errorf("bench allgather by %s must be refused, since it %s: %+v", algorithm, why, got)
		}
	}
}

func selfPath(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

func TestLocalhostNeedsNoRemoteShell(t *testing.T) {
	t.Setenv("PATH", "/usr/bin:/bin")
	if got := muster(t, t.TempDir(), "run", "--hosts", "localhost:2", "--label=never", "sh", "-c", "echo $PMI_SIZE"); got.out != "2\n2\n" {
		t.Errorf("localhost must need no ssh: %+v", got)
	}
}

func TestRunEnvFlag(t *testing.T) {
	t.Setenv("KNOWN", "known here")
	script := `echo "$KNOWN,$GIVEN,$EMPTY."`
	for name, where := range map[string][]string{
		"on this machine": {"-n", "1"},
		"on a host":       {"--hosts", "a", "--rsh", "env -u KNOWN -u GIVEN ON={host}"},
	} {
		args := append([]string{"run", "--label=never", "--env", "KNOWN", "--env", "GIVEN=a=b c", "--env", "EMPTY="}, where...)
		if got := muster(t, t.TempDir(), append(args, "sh", "-c", script)...); got.out != "known here,a=b c,.\n" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRunRejectsBadHostFlags(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		`invalid slot count "x"`:                {"--hosts", "a:x"},
		"begins with '-'":                       {"--hosts", "-a"},
		"use one":                               {"--hosts", "a", "--hostfile", "f"},
		"no such file":                          {"--hostfile", "no-such-file"},
		"9 ranks do not fit the 4 slots of a:4": {"--hosts", "a:4", "-n", "9"},
		"a job has at least one rank":           {"--hosts", "a", "-n", "0"},
		"quote ' is not closed":                 {"--hosts", "a", "--rsh", "'ssh"},
		"--rsh needs --hosts or --hostfile":     {"--rsh", "ssh"},
		"--tree-width 0":                        {"--hosts", "a", "--tree-width", "0"},
		"--start-timeout -1s":                   {"--hosts", "a", "--start-timeout", "-1s"},
		"the variable is not set here":          {"--env", "NO_SUCH_VARIABLE"},
		`give NAME=VALUE`:                       {"--env", "=x"},
		"there is no program ./prog":            {"--hosts", "a", "--rsh", here}, // reported by the host
	} {
		got := muster(t, dir, append(append([]string{"run"}, args...), "./prog")...)
		if want == "there is no program ./prog" {
			want = "host a: there is no program " + filepath.Join(dir, "prog")
		}
		if got.status != 2 || !strings.Contains(got.err, want) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%q must be refused in one line that says %q: %+v", args, want, got)
		}
	}
}

func TestAgentStartedByHand(t *testing.T) {
	got := muster(t, t.TempDir(), "agent") // its input lacks the words that muster run sends
	if got.status != 2 || !strings.Contains(got.err, "is started by muster run") {
		t.Errorf("an agent started by hand must report that: %+v", got)
	}
	if help := muster(t, t.TempDir(), "help"); strings.Contains(help.out, "agent") {
		t.Errorf("the help must not list agent:\n%s", help.out)
	}
}
