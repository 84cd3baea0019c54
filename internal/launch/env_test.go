//go:build !windows

package launch

import (
	"slices"
	"testing"
)

func TestRankEnvironment(t *testing.T) {
	base := []string{"A=1", "PMI_FD=9", "PMI_RANK=5", "B=x=y", "A=2", "MUSTER_DEVICE=shm", "PMI_PORT=host:1"}
	job := jobEnv(base, 4, 3, 2, "job-1", true, true)
	first, second := rankEnv(nil, job, nil, 1, 0), rankEnv(nil, job, nil, 2, 1)
	want := []string{"B=x=y", "A=2", "MUSTER_DEVICE=shm", "PMI_FD=3", "PMI_SIZE=4", "MPI_LOCALNRANKS=3", "PMI_JOBID=job-1",
		"MUSTER_BOARD_FD=4", "MUSTER_LIFELINE_FD=5", "GOMAXPROCS=2", "PMI_RANK=2", "MPI_LOCALRANKID=1"}
	if !slices.Equal(second, want) {
		t.Errorf("rank 2 gets\n%q\nand should get\n%q", second, want)
	}
	if slices.Contains(first, "PMI_RANK=2") {
		t.Errorf("ranks must not share an environment: rank 1 got %q", first)
	}
	for _, c := range []struct {
		base, want string
	}{{"GOMAXPROCS=7", "GOMAXPROCS=7"}, {"GOMAXPROCS=", "GOMAXPROCS=2"}} {
		env := jobEnv([]string{c.base}, 4, 4, 2, "job-1", false, false)
		n := 0
		for _, kv := range env {
			if len(kv) > 11 && kv[:11] == "GOMAXPROCS=" {
				n++
			}
		}
		if n != 1 || !slices.Contains(env, c.want) {
			t.Errorf("%q must become %q: %q", c.base, c.want, env)
		}
		if slices.Contains(env, "MUSTER_BOARD_FD=4") || slices.Contains(env, "MUSTER_LIFELINE_FD=5") {
			t.Errorf("without a board and a lifeline there are no descriptors of them: %q", env)
		}
	}
}

func TestProgramEnvironment(t *testing.T) {
	job := jobEnv([]string{"A=1", "B=2"}, 4, 3, 2, "job-1", false, false)
	got := rankEnv(nil, job, []string{"A=x", "C=3", "PMI_SIZE=9", "A=y", "PMI_RANK=8"}, 1, 0)
	want := []string{"B=2", "PMI_FD=3", "PMI_SIZE=4", "MPI_LOCALNRANKS=3", "PMI_JOBID=job-1", "GOMAXPROCS=2", "C=3", "A=y", "PMI_RANK=1", "MPI_LOCALRANKID=0"}
	if !slices.Equal(got, want) {
		t.Errorf("the rank gets\n%q\nand should get\n%q", got, want)
	}
	if !slices.Contains(job, "A=1") {
		t.Errorf("the environment of the other programs must not change: %q", job)
	}
}
