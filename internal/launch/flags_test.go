//go:build !windows

package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTimeout(t *testing.T) {
	for name, hosts := range map[string][]Host{"one host": nil, "several hosts": {{"a", 1}, {"b", 1}}} {
		for limit := 2 * time.Second; ; limit *= 3 {
			dir := t.TempDir()
			cfg := Config{Ranks: 2, Prog: shell(t), Args: []string{"-c", `touch "$0/$PMI_RANK"; exec sleep 600`, dir}, Env: os.Environ(), Hosts: hosts, Limits: Limits{Job: limit}}
			if hosts != nil {
				cfg.Remote.RSH = sameMachine(t)
			}
			began := time.Now()
			got := runJob(t, cfg)
			if want := "longer than " + seconds(limit) + ", the limit of --timeout"; got.Status != TimeoutStatus || !strings.Contains(got.Cause, want) {
				t.Errorf("%s: the status must be %d and the cause %q: %+v", name, TimeoutStatus, want, got.Result)
			}
			// Before all ranks run there is nothing to report about them. The time limit of
			// the job includes their start, which takes long on a busy machine.
			if started := startTime(t, dir, 2); started.IsZero() || started.Sub(began) > limit/2 {
				if limit < 30*time.Second {
					continue
				}
				t.Fatalf("%s: the ranks have not started within %v", name, limit/2)
			}
			for _, want := range []string{"muster: the time limit has passed; which rank waits for which:", "ranks 0-1 have not joined the job"} {
				if !strings.Contains(got.err, want) {
					t.Errorf("%s: the report must contain %q: %s", name, want, got.err)
				}
			}
			break
		}
	}
	if got := runRole(t, "hello", Config{Ranks: 2, Limits: Limits{Job: time.Minute}}); got.Status != 0 || got.err != "" {
		t.Errorf("a job within the limit must not be affected: %+v", got)
	}
}

// startTime returns when the last of the ranks made its file in a directory, or zero if
// not all have.
func startTime(t *testing.T, dir string, ranks int) (last time.Time) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < ranks {
		return time.Time{}
	}
	for _, f := range list {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if at := info.ModTime(); at.After(last) {
			last = at
		}
	}
	return last
}

func TestOutputFiles(t *testing.T) {
	script := []string{"-c", `echo "out $PMI_RANK"; echo "err $PMI_RANK" >&2; printf end`}
	for name, hosts := range map[string][]Host{"one host": nil, "several hosts": {{"a", 6}, {"b", 6}}} {
		dir := filepath.Join(t.TempDir(), "new", "dir")
		cfg := Config{Prog: shell(t), Args: script, Env: os.Environ(), Hosts: hosts, Output: Output{Dir: dir}}
		if cfg.Ranks = 12; hosts != nil {
			cfg.Remote.RSH = sameMachine(t)
		}
		got := runJob(t, cfg)
		if got.Status != 0 || got.out != "" || got.err != "" {
			t.Errorf("%s: nothing must be printed: %+v", name, got)
		}
		for file, want := range map[string]string{
			"rank-00.out": "out 0\nend", "rank-07.err": "err 7\n", "rank-11.out": "out 11\nend",
		} {
			if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(text) != want {
				t.Errorf("%s: %s has %q, %v; want %q", name, file, text, err, want)
			}
		}
	}
	full := filepath.Join(t.TempDir(), "rank-0.err")
	for script, status := range map[string]int{"echo lost >&2": 1, "echo lost >&2; exit 7": 7} {
		script = `rm "$0"; ln -s /dev/full "$0"; ` + script // before the first output, which opens the file
		got := runJob(t, Config{Ranks: 1, Prog: shell(t), Args: []string{"-c", script, full}, Env: os.Environ(), Output: Output{Dir: filepath.Dir(full), Quiet: true}})
		if want := "muster: output is lost: write " + full + ": no space left on device\n"; got.Status != status || got.err != want {
			t.Errorf("%s: lost output must be reported, and the status be %d: %+v", script, status, got)
		}
		if err := os.Remove(full); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := failsToStart(t, Config{Prog: shell(t), Ranks: 1, Output: Output{Dir: file}}, soon); !strings.Contains(text, "directory for output") {
		t.Errorf("a file in place of the directory must be reported: %s", text)
	}
}

func TestSeveralPrograms(t *testing.T) {
	script := `echo "$PMI_RANK of $PMI_SIZE: $0 $1 $X $PWD"`
	dir := t.TempDir()
	cfg := Config{Output: Output{Label: LabelNever}, Env: os.Environ(), Dir: t.TempDir(), Programs: []Program{
		{Ranks: 2, Prog: shell(t), Args: []string{"-c", script, "first", "a"}},
		{Ranks: 1, Prog: shell(t), Args: []string{"-c", script, "second", "b"}, Dir: dir, Env: []string{"X=x"}},
	}}
	for name, hosts := range map[string][]Host{"one host": nil, "several hosts": {{"a", 1}, {"b", 2}}} {
		if cfg.Hosts = hosts; hosts != nil {
			cfg.Remote.RSH = sameMachine(t)
		}
		got := runJob(t, cfg)
		for _, want := range []string{
			"0 of 3: first a  " + cfg.Dir + "\n", "1 of 3: first a  " + cfg.Dir + "\n", "2 of 3: second b x " + dir + "\n",
		} {
			if got.Status != 0 || strings.Count(got.out, want) != 1 {
				t.Errorf("%s: %q must come once: %+v", name, want, got)
			}
		}
	}
	for want, cfg := range map[string]Config{
		"has 0 ranks":       {Programs: []Program{{Prog: "a", Ranks: 1}, {Prog: "b"}}},
		"use one of them":   {Prog: "a", Programs: []Program{{Prog: "a", Ranks: 1}}},
		"no program to run": {Programs: []Program{{Ranks: 1}}},
	} {
		if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error must contain %q: %v", want, err)
		}
	}
}

func TestRanksByNode(t *testing.T) {
	got := onHosts(t, "hello", "a:2,b:2", Config{MapBy: MapBy{Node: true}, Output: Output{Label: LabelAlways}})
	if got.Status != 0 {
		t.Fatalf("the job failed: %+v", got)
	}
	script := Config{Prog: shell(t), Args: []string{"-c", `echo "$PMI_RANK on $AGENT_OF, local $PMI_LOCAL_RANK"`}, Env: os.Environ(),
		Hosts: []Host{{"a", 2}, {"b", 2}}, Remote: Remote{RSH: sameMachine(t)}, MapBy: MapBy{Node: true}, Output: Output{Label: LabelNever}}
	got = runJob(t, script)
	for _, want := range []string{"0 on a", "1 on b", "2 on a", "3 on b"} {
		if strings.Count(got.out, want) != 1 {
			t.Errorf("%q must come once: %+v", want, got)
		}
	}
}

func TestReportBindings(t *testing.T) {
	cfg := Config{Ranks: 2, Prog: shell(t), Args: []string{"-c", "true"}, Bind: BindCore, ReportBindings: true}
	got := runJob(t, cfg)
	if len(thisMachine().cores) == 0 {
		t.Skip("this system has no core binding")
	}
	if strings.Count(got.err, "muster: rank ") != 2 || strings.Count(got.err, "CPU") != 2 || !strings.Contains(got.err, "(socket ") {
		t.Errorf("the cores of both ranks must be reported: %s", got.err)
	}
	cfg.Hosts, cfg.Remote.RSH, cfg.Bind = []Host{{"a", 2}}, sameMachine(t), BindNone
	if got := runJob(t, cfg); got.err != "muster: host a: rank 0: not bound\nmuster: host a: rank 1: not bound\n" {
		t.Errorf("ranks that are not bound must be reported with their host: %q", got.err)
	}
	m := thisMachine()
	for line := range strings.Lines(runRole(t, "binding", Config{Ranks: 2, Bind: BindSocket, Output: Output{Label: LabelNever}}).out) {
		list, _, _ := strings.Cut(strings.TrimPrefix(line, "cores="), " ")
		threads := 0
		for _, core := range m.widen([]int{0}, BindSocket) {
			threads += len(m.cores[core])
		}
		if len(m.parts(DomainSocket)) == 1 && len(parseCPUList(list)) != threads {
			t.Errorf("a rank bound to the only socket must have all its %d CPUs: %q", threads, line)
		}
	}
}

func TestVerbose(t *testing.T) {
	got := onHosts(t, "hello", "a,b", Config{Output: Output{Verbose: true}})
	for _, want := range []string{`msg="starting agent" host=a`, `msg="agent ready" host=b`, `msg="rank started" rank=1 host=b pid=`, `msg="rank exited" rank=0 how=`, "level=INFO"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("the log must contain %q: %s", want, got.err)
		}
	}
	for line := range strings.Lines(got.err) {
		if !strings.HasPrefix(line, "muster: time=") {
			t.Errorf("the log must consist of labelled records: %q", line)
		}
	}
}
