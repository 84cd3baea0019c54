//go:build !muster_portable

package mpi_test

// Failed processes, and jobs with other configurations: muster run starts the test binary
// as a job. TestMain runs the program that programVar names instead of the tests.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/mpitest"
)

// launcher returns muster, which make test has built, or builds it for the test.
func launcher(t *testing.T) string {
	t.Helper()
	if mpitest.Launched() {
		t.Skip("a rank starts no jobs")
	}
	if testing.Short() {
		t.Skip("builds and starts programs")
	}
	if path := os.Getenv("TEST_MUSTER"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "muster")
	build := exec.Command("go", "build", "-o", path, "github.com/muster-mpi/muster/cmd/muster")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("muster cannot be built here: %v\n%s", err, out)
	}
	return path
}

func job(t *testing.T, muster string, ranks int, env []string, args ...string) (output string, status int, took time.Duration) {
	t.Helper()
	return jobWith(t, muster, nil, ranks, env, args...)
}

// jobWith is job with flags of muster run.
func jobWith(t *testing.T, muster string, flags []string, ranks int, env []string, args ...string) (output string, status int, took time.Duration) {
	t.Helper()
	self, err := os.Executable()
	noError(t, err, "find the test binary")
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	line := append(append([]string{"run", "-n", fmt.Sprint(ranks)}, flags...), self)
	cmd := exec.CommandContext(ctx, muster, append(line, args...)...)
	cmd.Env = append(os.Environ(), env...)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	took = time.Since(begin)
	if ctx.Err() != nil {
		t.Fatalf("the job has not ended after %v:\n%s", took, out)
	}
	if cmd.ProcessState == nil {
		t.Fatalf("start the job: %v", err)
	}
	return string(out), cmd.ProcessState.ExitCode(), took
}

// TestShortMessageBehindManyLargeOnes with processes, where the device copies differently.
func TestShortMessageBehindManyLargeOnesOfProcesses(t *testing.T) {
	out, status, _ := job(t, launcher(t), 2, nil, "-test.run", "^TestShortMessageBehindManyLargeOnes$", "-test.timeout", "30s")
	if status != 0 {
		t.Errorf("the job ended with status %d:\n%s", status, out)
	}
}

// Rank 1 exits with status 3 while the others wait for a message of rank 0, which waits too,
// or for rank 1 in shared memory: all get an error that names rank 1, and the job ends with
// its status.
func TestProcessDies(t *testing.T) {
	muster := launcher(t)
	for program, call := range map[string]string{"die": "Recv", "die in segment": "Allreduce"} {
		t.Run(program, func(t *testing.T) { processDies(t, muster, program, call) })
	}
}

// Ranks make different calls on the world: all get an error with the calls.
func TestProcessesInDifferentCollectives(t *testing.T) {
	muster := launcher(t)
	for _, ranks := range []int{2, 5} {
		out, status, took := job(t, muster, ranks, []string{programVar + "=different collectives"})
		for r := range ranks {
			for _, what := range []string{"reports", "then"} {
				if !strings.Contains(out, fmt.Sprintf("rank %d %s: mpi: ", r, what)) {
					t.Errorf("rank %d of %d: no error (%s)", r, ranks, what)
				}
			}
		}
		if !strings.Contains(out, "in Barrier") || !strings.Contains(out, "in Allreduce of 8 bytes") || status == 0 || took > 10*time.Second {
			t.Errorf("the job ended with status %d after %v", status, took)
		}
		if t.Failed() {
			t.Logf("%d ranks:\n%s", ranks, out)
		}
	}
}

func processDies(t *testing.T, muster, program, call string) {
	out, status, took := job(t, muster, 3, []string{programVar + "=" + program})
	for _, rank := range []string{"0", "2"} {
		if !strings.Contains(out, "rank "+rank+" reports: mpi: "+call) {
			t.Errorf("rank %s reported no error, or not in time", rank)
		}
	}
	if strings.Count(out, "rank 1 on ") < 2 || status != 3 {
		t.Errorf("the job ended with status %d, want 3, and the errors should name rank 1", status)
	}
	if took > 5*time.Second {
		t.Errorf("the job took %v to end", took)
	}
	if t.Failed() {
		t.Logf("output:\n%s", out)
	}
}

// Rank 1 exits while rank 0 computes, with a large receive from it and a large send to it
// driven by the progress thread.
func TestProcessDiesInBackground(t *testing.T) {
	muster := launcher(t)
	out, status, took := job(t, muster, 2, []string{programVar + "=die computing", "MUSTER_PROGRESS=async"})
	if strings.Count(out, "rank 0 reports: mpi: ") != 2 || strings.Count(out, "rank 1 on ") < 2 || status != 3 {
		t.Errorf("the job ended with status %d, want 3, and both errors of rank 0 should name rank 1:\n%s", status, out)
	}
	if took > 5*time.Second {
		t.Errorf("the job took %v to end", took)
	}
}

// Large messages are transferred between computing processes, and other calls work
// meanwhile.
func TestBackgroundBetweenProcesses(t *testing.T) {
	if race.Enabled {
		t.Skip("the ranks are processes, which the detector cannot see")
	}
	muster := launcher(t)
	for _, env := range []string{
		"MUSTER_SPIN=0", "MUSTER_NO_PROCESS_VM=1", "MUSTER_RENDEZVOUS=get", "MUSTER_RENDEZVOUS=put",
		"MUSTER_RENDEZVOUS=coop MUSTER_SPIN=1 MUSTER_YIELD=1", "MUSTER_SPECULATE=always",
	} {
		t.Run(env, func(t *testing.T) {
			out, status, _ := job(t, muster, 3, append(strings.Fields(env), "MUSTER_PROGRESS=async"),
				"-test.run=^(TestTraffic|TestLargeMessagesMove.*|TestCallsBeside.*|TestTrafficInBackground)$")
			if status != 0 || strings.Count(out, "PASS") != 3 {
				t.Errorf("with %s the job ended with status %d:\n%s", env, status, out)
			}
		})
	}
}

// Without process_vm a large message is copied in and out through the ring of small
// ones, so it costs about as much processor time as the same bytes in small messages.
// An earlier version parked and woke a thread for each piece, and the launcher reported the
// job as stuck.
func TestLargeMessagesWithoutProcessVM(t *testing.T) {
	if race.Enabled {
		t.Skip("the ranks are processes, which the detector cannot see")
	}
	muster := launcher(t)
	for _, env := range []string{"", "MUSTER_RENDEZVOUS=get", "MUSTER_RENDEZVOUS=put"} {
		t.Run(env, func(t *testing.T) {
			out, status, _ := jobWith(t, muster, []string{"--stuck-after", "500ms"}, 2,
				append(strings.Fields(env), programVar+"=large", "MUSTER_NO_PROCESS_VM=1"))
			var small, large float64
			i := strings.Index(out, "processor seconds: ")
			if status != 0 || i < 0 {
				t.Fatalf("the job ended with status %d:\n%s", status, out)
			}
			if _, err := fmt.Sscanf(out[i:], "processor seconds: %f in small messages, %f in a large one", &small, &large); err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			if large > 4*small+0.2 {
				t.Errorf("%d MB took %.2f s of processor time in one message, %.2f s in small ones", copiedBytes>>20, large, small)
			}
			if strings.Contains(out, "no progress for") {
				t.Errorf("the launcher took a job that moves a large message for stuck:\n%s", out)
			}
		})
	}
}

// The traffic of TestTraffic between processes, with every protocol for large messages.
func TestTrafficBetweenProcesses(t *testing.T) {
	if race.Enabled {
		t.Skip("the ranks are processes, which the detector cannot see")
	}
	muster := launcher(t)
	for _, env := range []string{
		"MUSTER_NO_PROCESS_VM=0", "MUSTER_NO_PROCESS_VM=1", "MUSTER_NO_MEMFD=1",
		"MUSTER_RENDEZVOUS=get", "MUSTER_RENDEZVOUS=put", "MUSTER_RENDEZVOUS=coop",
		"MUSTER_RENDEZVOUS=get MUSTER_NO_PROCESS_VM=1", "MUSTER_RENDEZVOUS=put MUSTER_NO_PROCESS_VM=1",
		"MUSTER_RENDEZVOUS=coop MUSTER_NO_PROCESS_VM=1", "MUSTER_CREDIT=2000", "MUSTER_RING_BYTES=4096 MUSTER_RINGS=1",
	} {
		t.Run(env, func(t *testing.T) {
			out, status, _ := job(t, muster, 3, strings.Fields(env), "-test.run=^(TestTraffic|TestModes.*)$")
			if status != 0 || strings.Count(out, "PASS") != 3 {
				t.Errorf("with %s the job ended with status %d:\n%s", env, status, out)
			}
		})
	}
}

// Collectives in shared memory between processes, with every way to share the segment, and
// with more ranks than cores.
func TestNodeBetweenProcesses(t *testing.T) {
	if race.Enabled {
		t.Skip("the ranks are processes, which the detector cannot see")
	}
	muster := launcher(t)
	for _, ranks := range []int{2, 5} {
		for _, env := range []string{"MUSTER_NO_MEMFD=0", "MUSTER_NO_MEMFD=1", "MUSTER_SPIN=1 MUSTER_YIELD=1"} {
			t.Run(fmt.Sprintf("%d ranks, %s", ranks, env), func(t *testing.T) {
				out, status, _ := job(t, muster, ranks, strings.Fields(env), "-test.run=^(TestNodeCollective.*|TestNodeCommunicators|TestNonCommutativeReduce|TestCountsThatDiffer)$")
				if status != 0 || strings.Count(out, "PASS") != ranks {
					t.Errorf("the job ended with status %d:\n%s", status, out)
				}
			})
		}
	}
}
