//go:build !muster_portable

package mpi_test

// The launcher is killed. The kernel ends the launcher's own child processes, but here
// those are shells, and the ranks are children of the shells.

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

func TestOrphanedRanksEnd(t *testing.T) {
	muster := launcher(t)
	self, err := os.Executable()
	noError(t, err, "find the test binary")
	for name, where := range map[string][]string{
		"local":      {"-n", "3"},
		"with agent": {"--hosts", "a:2,b:1", "--rsh", "env AGENT_OF={host}"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			args := append(append([]string{"run"}, where...), "--env", "ORPHAN_DIR="+dir, "--env", programVar+"=orphan",
				"sh", "-c", `"$0" 2>"$ORPHAN_DIR/stderr.$PMI_RANK"; true`, self)
			cmd := exec.Command(muster, args...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			noError(t, cmd.Start(), "start the job")
			pids := make([]int, 3)
			for rank := range pids {
				text := awaitFile(t, filepath.Join(dir, fmt.Sprintf("pid.%d", rank)))
				pids[rank], err = strconv.Atoi(text)
				noError(t, err, "read a process number")
			}
			time.Sleep(200 * time.Millisecond) // until rank 0 waits in Recv; either order is correct
			killed := time.Now()
			cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
			for rank, pid := range pids {
				if !mpi.Eventually(10*time.Second, func() bool { return !running(pid) }) {
					for _, p := range pids {
						syscall.Kill(p, syscall.SIGKILL)
					}
					t.Fatalf("rank %d (pid %d) still runs %v after its launcher was killed", rank, pid, time.Since(killed))
				}
			}
			t.Logf("all had ended %v after the launcher was killed", time.Since(killed))
			if name != "local" {
				return // the agents have stopped the ranks
			}
			output, _ := os.ReadFile(filepath.Join(dir, "error.0"))
			if !strings.Contains(string(output), "the launcher of this job is gone") {
				t.Errorf("Recv of rank 0 must fail and say that the launcher is gone: %q", output)
			}
			for rank := 1; rank < 3; rank++ {
				words, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("stderr.%d", rank)))
				if !strings.Contains(string(words), fmt.Sprintf("rank %d (pid %d): the launcher of this job is gone", rank, pids[rank])) {
					t.Errorf("rank %d, which computes or sleeps, must say why it ends: %q", rank, words)
				}
			}
		})
	}
}

// awaitFile returns the contents of a file once it has any.
func awaitFile(t *testing.T, path string) string {
	t.Helper()
	var text []byte
	if !mpi.Eventually(20*time.Second, func() bool { text, _ = os.ReadFile(path); return len(text) > 0 }) {
		t.Fatalf("%s was not written", path)
	}
	return string(text)
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
