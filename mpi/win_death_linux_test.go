//go:build !muster_portable

package mpi_test

// A rank dies while another one uses windows in shared memory and does not wait for any
// rank. It must detect the failure all the same, with a launcher and without.

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpitest"
)

func wantFailure(t *testing.T, name, output string, victim int) {
	t.Helper()
	failure := fmt.Sprintf("rank %d reports: mpi: %s", 1-victim, name)
	if name == "Lock" {
		failure = fmt.Sprintf("rank %d reports: mpi: ", 1-victim) // Lock or Unlock
	}
	if !strings.Contains(output, failure) || !strings.Contains(output, fmt.Sprintf(": rank %d on ", victim)) {
		t.Errorf("%s on the memory of rank %d, which is dead, must fail and name it:\n%s", name, victim, output)
	}
}

func TestWindowOfADeadRankUnderALauncher(t *testing.T) {
	muster := launcher(t)
	for name := range windowCalls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, _ := job(t, muster, 2, []string{programVar + "=" + windowProgram + name, "VICTIM=1"})
			wantFailure(t, name, out, 1)
		})
	}
}

func TestWindowOfADeadRankWithoutALauncher(t *testing.T) {
	if testing.Short() || mpitest.Launched() {
		t.Skip("starts processes")
	}
	for name := range windowCalls {
		for victim := range 2 {
			if victim == 0 && name != "Put" {
				continue // who tells of rank 0 tells of it whatever the call
			}
			t.Run(fmt.Sprintf("%s, rank %d dies", name, victim), func(t *testing.T) {
				t.Parallel()
				out := byVariables(t, 2, programVar+"="+windowProgram+name, fmt.Sprintf("VICTIM=%d", victim))
				wantFailure(t, name, out, victim)
			})
		}
	}
}

// byVariables runs this binary as the ranks of a job without a launcher, and returns their
// output.
func byVariables(t *testing.T, ranks int, env ...string) string {
	t.Helper()
	self, err := os.Executable()
	noError(t, err, "find the test binary")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err, "find a free port")
	root := listener.Addr().String()
	listener.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	outputs := make([]bytes.Buffer, ranks)
	cmds := make([]*exec.Cmd, ranks)
	for rank := range cmds {
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(append(os.Environ(), env...), fmt.Sprintf("MUSTER_RANK=%d", rank), fmt.Sprintf("MUSTER_SIZE=%d", ranks),
			"MUSTER_ROOT="+root, "MUSTER_KEY=0123456789abcdef0123456789abcdef")
		cmd.Stdout, cmd.Stderr = &outputs[rank], &outputs[rank]
		noError(t, cmd.Start(), "start a rank")
		cmds[rank] = cmd
	}
	all := ""
	for rank, cmd := range cmds {
		_ = cmd.Wait() // some are meant to fail
		all += outputs[rank].String()
	}
	if ctx.Err() != nil {
		t.Fatalf("the job has not ended:\n%s", all)
	}
	return all
}
