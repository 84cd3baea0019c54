//go:build !windows

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/launch"
)

func TestAcceptForms(t *testing.T) {
	fl := newRunCommand().Flags()
	for in, want := range map[string]string{
		"-np 4 ./prog":                    "-n 4 ./prog",
		"-q -np 4 ./prog -np 3":           "-q -n 4 ./prog -np 3",
		"--rsh -np -np 4 ./prog":          "--rsh -np -n 4 ./prog",
		"--rsh=x -np 4 ./prog":            "--rsh=x -n 4 ./prog",
		"--profile -np 4 ./prog":          "--profile -n 4 ./prog",
		"-n -np ./prog":                   "-n -np ./prog",
		"-n 2 -- -np":                     "-n 2 -- -np",
		"./prog -np 2":                    "./prog -np 2",
		"--profile arrivals -n 2 ./prog":  "--profile=arrivals -n 2 ./prog",
		"-n 2 --profile p.json ./prog":    "-n 2 --profile=p.json ./prog",
		"--profile ./prog arrivals":       "--profile ./prog arrivals",
		"--profile=arrivals arrivals":     "--profile=arrivals arrivals",
		"--lab no-such-lab -np 2":         "--lab no-such-lab -np 2",
		"--quiet arrivals":                "--quiet arrivals",
		"--no-such-flag -np 4 ./prog -np": "--no-such-flag -n 4 ./prog -np",
	} {
		if got := strings.Join(acceptForms(fl, strings.Fields(in)), " "); got != want {
			t.Errorf("%q becomes %q, not %q", in, want, got)
		}
	}
}

func TestParseSegments(t *testing.T) {
	for in, want := range map[string][]segment{
		"./a":                      {{args: []string{"./a"}}},
		"./a -x y":                 {{args: []string{"./a", "-x", "y"}}},
		"./a x : -n 2 ./b -n 3":    {{args: []string{"./a", "x"}}, {ranks: 2, args: []string{"./b", "-n", "3"}}},
		"./a : -np 2 --wdir d ./b": {{args: []string{"./a"}}, {ranks: 2, wdir: "d", args: []string{"./b"}}},
		"a : -n1 --env X=1 b : c":  {{args: []string{"a"}}, {ranks: 1, env: []string{"X=1"}, args: []string{"b"}}, {args: []string{"c"}}},
		"a host:4 : -n 1 b :x":     {{args: []string{"a", "host:4"}}, {ranks: 1, args: []string{"b", ":x"}}},
	} {
		if got, err := parseSegments(strings.Fields(in)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, got %+v, %v", in, want, got, err)
		}
	}
	for in, want := range map[string]string{
		"a :": "no program 2", "a : : b": "no program 2", ": a": "no program 1", "a : -n 2": "no program 2",
		"a : --hosts x b": "come before the first program", "a : -n 0 b": "at least one rank",
	} {
		if _, err := parseSegments(strings.Fields(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q must be rejected with %q: %v", in, want, err)
		}
	}
}

func TestSeveralProgramsOfOneJob(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prog"), []byte("#!/bin/sh\necho \"$PMI_RANK/$PMI_SIZE $1 $X $PWD\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := muster(t, dir, "run", "--label=never", "-np", "1", "./prog", "one", ":", "-np", "2", "--env", "X=x", "--wdir", "/", "./prog", "two")
	for _, want := range []string{"0/3 one  " + dir, "1/3 two x /\n", "2/3 two x /\n"} {
		if got.status != 0 || got.err != "" || strings.Count(got.out, want) != 1 {
			t.Errorf("%q must come once: %+v", want, got)
		}
	}
	if got := muster(t, dir, "run", "./prog", ":", "-n", "2", "./prog"); got.status != 2 || !strings.Contains(got.err, "program 1 of 2 (./prog) has no -n") {
		t.Errorf("a program without -n must be refused: %+v", got)
	}
}

// Without -n there is a rank for each core.
func TestDefaultNumberOfRanks(t *testing.T) {
	got := muster(t, t.TempDir(), "run", "--label=never", "sh", "-c", "echo $PMI_SIZE")
	if want := strings.Repeat(fmt.Sprintln(launch.Cores()), launch.Cores()); got.out != want {
		t.Errorf("there must be %d ranks: %+v", launch.Cores(), got)
	}
}

func TestHostsOfBatchSystems(t *testing.T) {
	dir := t.TempDir()
	nodes := filepath.Join(dir, "nodes")
	if err := os.WriteFile(nodes, []byte("b1\nb1\nb2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	script := []string{"--label=never", "--rsh", here, "sh", "-c", `echo "$PMI_RANK/$PMI_SIZE on $ON"`}
	for _, c := range []struct {
		what string
		env  []string
		args []string
		want string
	}{
		{"Slurm", []string{"SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=2,1"}, script, "0/3 on n1|1/3 on n1|2/3 on n2"},
		{"Slurm by node", []string{"SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_CPUS_PER_NODE=2(x2)"}, append([]string{"--map-by", "node"}, script...), "0/4 on n1|1/4 on n2|2/4 on n1|3/4 on n2"},
		{"Slurm and -n", []string{"SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_CPUS_PER_NODE=8(x2)"}, append([]string{"-n", "2"}, script...), "0/2 on n1|1/2 on n1"},
		{"PBS", []string{"PBS_NODEFILE=" + nodes}, script, "0/3 on b1|1/3 on b1|2/3 on b2"},
		{"--host overrides", []string{"PBS_NODEFILE=" + nodes}, append([]string{"--host", "x"}, script...), "0/1 on x"},
		{"this machine alone", []string{"SLURM_JOB_NODELIST=" + self, "SLURM_TASKS_PER_NODE=3"}, []string{"--label=never", "sh", "-c", `echo "$PMI_RANK/$PMI_SIZE"`}, "0/3|1/3|2/3"},
	} {
		for _, kv := range c.env {
			name, value, _ := strings.Cut(kv, "=")
			t.Setenv(name, value)
		}
		got := muster(t, dir, append([]string{"run"}, c.args...)...)
		lines := strings.Split(strings.TrimSpace(got.out), "\n")
		slices.Sort(lines)
		if got.status != 0 || strings.Join(lines, "|") != c.want {
			t.Errorf("%s: want %s, got %+v", c.what, c.want, got)
		}
		for _, kv := range c.env {
			name, _, _ := strings.Cut(kv, "=")
			t.Setenv(name, "")
		}
	}
	t.Setenv("SLURM_JOB_NODELIST", "n[1-")
	if got := muster(t, dir, "run", "true"); got.status != 2 || !strings.Contains(got.err, "SLURM_JOB_NODELIST: node list") {
		t.Errorf("a bad node list must be reported: %+v", got)
	}
}

func TestFlagsOfRun(t *testing.T) {
	dir := t.TempDir()
	if got := muster(t, dir, "run", "-n", "2", "--timeout", "1s", "sleep", "30"); got.status != 124 || !strings.Contains(got.err, "the limit of --timeout") {
		t.Errorf("--timeout must end the job with status 124: %+v", got)
	}
	if got := muster(t, dir, "run", "-n", "2", "--output", "logs", "sh", "-c", "echo $PMI_RANK; echo e >&2"); got.status != 0 || got.out != "" || got.err != "" {
		t.Errorf("with --output nothing is printed: %+v", got)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "logs", "rank-1.out")); string(text) != "1\n" {
		t.Errorf("rank 1 must write to its own file: %q, %v", text, err)
	}
	if got := muster(t, dir, "run", "-n", "1", "--wdir", "logs", "pwd"); got.out != filepath.Join(dir, "logs")+"\n" {
		t.Errorf("--wdir must set the directory: %+v", got)
	}
	if got := muster(t, dir, "run", "-n", "1", "--report-bindings", "--bind-to", "none", "true"); got.err != "muster: rank 0: not bound\n" {
		t.Errorf("--report-bindings must report the rank: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "prog"), []byte("#!/bin/sh\necho $0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := muster(t, dir, "run", "--copy", "-n", "1", "./prog"); got.status != 2 || !strings.Contains(got.err, "--copy needs --hosts or --hostfile") {
		t.Errorf("--copy without hosts must be refused: %+v", got)
	}
	if got := muster(t, dir, "run", "--copy", "--hosts", "a", "--rsh", here, "./prog"); got.status != 0 || strings.Contains(got.out, dir) || !strings.Contains(got.out, "/prog\n") {
		t.Errorf("with --copy a host must run its copy: %+v", got)
	}
	if got := muster(t, dir, "run", "-n", "1", "-v", "true"); !strings.Contains(got.err, `msg="rank exited" rank=0`) {
		t.Errorf("-v must log the steps of the job: %+v", got)
	}
	if got := muster(t, dir, "run", "-n", "2", "sh", "-c", `printf 'a\rb\rend\n'`); strings.Count(got.out, "a\r[0] b\r[0] end\n")+strings.Count(got.out, "a\r[1] b\r[1] end\n") == 0 {
		t.Errorf("a progress display must be passed through: %+v", got)
	}
	if got := muster(t, dir, "run", "-n", "1", "--port-range", "7000-7009", "sh", "-c", "echo $MUSTER_PORTS"); got.out != "7000-7009\n" {
		t.Errorf("--port-range must reach the ranks: %+v", got)
	}
	for _, c := range [][]string{
		{"--port-range", "9-8", "such as 7000-7099"},
		{"--timeout", "-1s", "--timeout"}, {"--wdir", "nowhere", "--wdir"}, {"--map-by", "moon", "unknown mapping"}, {"-qv", "-v", "exclude each other"},
	} {
		if got := muster(t, dir, "run", "-n", "1", c[0], c[1], "true"); got.status != 2 || !strings.Contains(got.err, c[2]) {
			t.Errorf("%s %s must be refused with %q: %+v", c[0], c[1], c[2], got)
		}
	}
}

// Each rank writes a profile that go tool pprof can read: gzip data that is not empty.
func TestProfilePerRank(t *testing.T) {
	dir := t.TempDir()
	got := muster(t, dir, "run", "-n", "2", "--pprof", "profiles", "--env", asRank+"=well", selfPath(t))
	if got.status != 0 || got.err != "" {
		t.Fatalf("the job failed: %+v", got)
	}
	for _, name := range []string{"rank-0.pprof", "rank-1.pprof"} {
		text, err := os.ReadFile(filepath.Join(dir, "profiles", name))
		if err != nil || len(text) < 100 || !strings.HasPrefix(string(text), "\x1f\x8b") {
			t.Errorf("%s must be a compressed profile: %d bytes, %v", name, len(text), err)
		}
	}
	// A rank that fails keeps its profile.
	if got := muster(t, dir, "run", "-n", "2", "--pprof", "failed", "--env", asRank+"=fail", selfPath(t)); got.status == 0 {
		t.Fatalf("rank 1 must fail: %+v", got)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "failed", "rank-1.pprof")); err != nil || len(text) < 100 {
		t.Errorf("the rank that failed must have a profile too: %d bytes, %v", len(text), err)
	}
	if got := muster(t, dir, "run", "-n", "1", "--pprof", "/dev/null/x", "--env", asRank+"=well", selfPath(t)); got.status == 0 || !strings.Contains(got.err, "MUSTER_PPROF") {
		t.Errorf("a directory that cannot be made must be reported: %+v", got)
	}
}
