//go:build launchers

package launchers

// No launcher: four processes with the environment that an indexed Kubernetes
// Job gives its pods.

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// indexedJob runs a program as four processes and gives what each printed.
func indexedJob(t *testing.T, env []string, command []string) (outs [4]string, errs [4]error) {
	t.Helper()
	root := fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1)[0])
	var wg sync.WaitGroup
	for i := range outs {
		wg.Go(func() {
			outs[i], errs[i] = run(t, append([]string{
				fmt.Sprintf("JOB_COMPLETION_INDEX=%d", i), "MUSTER_SIZE=4", "MUSTER_ROOT=" + root, "MUSTER_KEY=test-of-launchers",
			}, env...), command[0], command[1:]...)
		})
	}
	wg.Wait()
	if conn, err := net.Dial("tcp", root); err == nil {
		conn.Close()
		t.Error("the port of rank 0 must be closed after the job")
	}
	return outs, errs
}

func TestIndexedJob(t *testing.T) {
	for _, c := range []trial{
		{"four ranks find each other", []string{role + "exchange"}, nodeLines(0, 0, 0, 0), nil, plain},
		{"a message goes round", nil, ringOfFour, nil, ring},
		{"a message goes round over the network", []string{"MUSTER_INTERFACE=lo", "MUSTER_NO_SHARED_MEMORY=1"}, ringOfFour, nil, ring},
		{"the tests of point-to-point pass", nil, []string{"PASS"}, nil, mpi},
	} {
		t.Run(c.name, func(t *testing.T) {
			outs, errs := indexedJob(t, c.env, c.prog.command(t))
			all := strings.Join(outs[:], "\n")
			for i, err := range errs {
				if err != nil {
					t.Errorf("rank %d: %v; it printed\n%s", i, err, end(outs[i]))
				}
			}
			for _, line := range c.want {
				if !strings.Contains(all, line+"\n") {
					t.Errorf("the job must print %q; it printed\n%s", line, end(all))
				}
			}
		})
	}
	t.Run("an abort is reported to all", func(t *testing.T) {
		outs, errs := indexedJob(t, []string{role + "hear"}, plain.command(t))
		for i, out := range outs {
			if i != 1 && (errs[i] != nil || !strings.Contains(out, "rank 1 aborted the job with code 17: on purpose")) {
				t.Errorf("rank %d must report the abort of rank 1; got %v and\n%s", i, errs[i], out)
			}
		}
	})
}
