//go:build !muster_portable

package mpi_test

// Jobs that start other jobs, under muster run. The test binary is the program of both.

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const spawnDeadline = 2 * time.Minute

var spawnCycleCount = flag.Int("spawn.cycles", 12, "jobs that one program of TestSpawn starts, one after the other; nightly 1000")

func TestSpawn(t *testing.T) {
	muster := launcher(t)
	for _, c := range []struct {
		name  string
		where []string
		want  []string // in the output
		fails bool
	}{
		{"talk", []string{"-n", "2"}, []string{"parents of 3 children are done"}, false},
		{"talk alone", []string{"-n", "1"}, []string{"parents of 3 children are done"}, false},
		{"talk agents", []string{"--hosts", "a:2,b:1", "--rsh", "env AGENT_OF={host}"}, []string{"parents of 3 children are done"}, false},
		{"talk network", []string{"-n", "2", "--env", "MUSTER_NO_SHARED_MEMORY=1"}, []string{"parents of 3 children are done"}, false},
		{fmt.Sprint("cycles ", *spawnCycleCount), []string{"-n", "2"}, []string{"nothing is left"}, false},
		{"progress", []string{"-n", "2"}, []string{"parents of 1 children are done"}, false},
		{"grandchild", []string{"-n", "1"}, []string{"the grandchild has met its parent"}, false},
		{"far", []string{"-n", "3"}, []string{"rank 0 has met all children", "rank 2 has met all children"}, false},
		{"stay", []string{"-n", "2"}, []string{"parents of 2 children are done"}, false},
		{"missing", []string{"-n", "2"}, []string{"rank 0: mpi: Spawn on world: ", "rank 1: mpi: Spawn on world: ", "no such file"}, false},
		{"early", []string{"-n", "2"}, []string{"rank 0: mpi: Spawn on world: ", "rank 1: mpi: Spawn on world: ", "exit status 3"}, true},
		{"ports", []string{"-n", "5"}, []string{"rank 0 has talked to 3 ranks", "rank 4 has talked to 2 ranks"}, false},
		{"ports network", []string{"--hosts", "a:2,b:2", "--rsh", "env AGENT_OF={host}"}, []string{"rank 0 has talked to 2 ranks"}, false},
		{"never joins", []string{"-n", "2"}, []string{"rank 1: mpi: Spawn on world: ", "exited with status 0"}, false},
		{"die", []string{"-n", "2"}, []string{"rank 0 goes on without its children", "rank 1 goes on without its children", "exit status 7"}, true},
		{"root dies", []string{"-n", "2"}, []string{"exit status 9"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := runSpawning(t, muster, c.name, c.where...)
			if (err != nil) != c.fails {
				t.Errorf("the job ended with %v:\n%s", err, out)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("the output must contain %q:\n%s", want, out)
				}
			}
		})
	}
}

func runSpawning(t *testing.T, muster, what string, where ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	noError(t, err, "find the test binary")
	ctx, cancel := context.WithTimeout(t.Context(), spawnDeadline+time.Duration(*spawnCycleCount)*100*time.Millisecond)
	defer cancel()
	args := append(append([]string{"run"}, where...), "--env", programVar+"="+spawnProgram+what, self)
	cmd := exec.CommandContext(ctx, muster, args...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Errorf("the job hangs")
	}
	return string(out), err
}
