//go:build !muster_portable

package mpi_test

// Ranks that do not fit together: other settings, a second Init.

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// startTimeout is how long ranks wait for each other at the start. Ranks that cannot run in
// one job must not wait for it; how long processes take to start is up to the machine.
const startTimeout = time.Minute

func TestSettingsThatDiffer(t *testing.T) {
	muster := launcher(t)
	self, err := os.Executable()
	noError(t, err, "find the test binary")
	launchers := map[string][]string{"muster": {muster, "run", "-n", "3"}}
	if hydra, err := exec.LookPath("mpiexec.hydra"); err == nil {
		launchers["hydra"] = []string{hydra, "-n", "3"}
	}
	for setting, value := range map[string]string{"MUSTER_COLLECTIVE": "allreduce=ring", "MUSTER_CREDIT": "1000000"} {
		for name, words := range launchers {
			t.Run(setting+" "+name, func(t *testing.T) {
				script := `if [ $PMI_RANK = 1 ]; then export ` + setting + `=` + value + `; fi; exec "$0"`
				ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
				defer cancel()
				cmd := exec.CommandContext(ctx, words[0], append(words[1:], "sh", "-c", script, self)...)
				cmd.WaitDelay = time.Second // the ranks may still have its output
				cmd.Env = append(os.Environ(), programVar+"=reduce twice")
				began := time.Now()
				out, err := cmd.CombinedOutput()
				if err == nil {
					t.Fatalf("the job must fail:\n%s", out)
				}
				for _, want := range []string{"rank 1 on ", setting + "=" + value, "the default of " + setting, "give all ranks the same value"} {
					if !strings.Contains(string(out), want) {
						t.Errorf("the error must contain %q:\n%s", want, out)
					}
				}
				if name == "muster" && strings.Count(string(out), "\n") != 1 {
					t.Errorf("one sentence is enough:\n%s", out)
				}
				if took := time.Since(began); took > startTimeout/2 {
					t.Errorf("it took %v: the ranks have waited for a timeout", took)
				}
			})
		}
	}
}

func TestSecondInit(t *testing.T) {
	if mpitest.Launched() {
		_, err := mpi.Init(context.Background(), nil)
		if err == nil || !strings.Contains(err.Error(), "has joined its job before") || !strings.Contains(err.Error(), "call Init or Main once") {
			t.Errorf("a second Init returned %v", err)
		}
		return
	}
	muster := launcher(t)
	self, err := os.Executable()
	noError(t, err, "find the test binary")
	out, err := exec.Command(muster, "run", "-n", "2", "--env", programVar+"=init twice", self).CombinedOutput()
	if err != nil || strings.Count(string(out), "call Init or Main once") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}
