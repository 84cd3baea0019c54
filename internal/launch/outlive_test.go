//go:build !windows

package launch

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

var survivingTerms = pmi.Terms{Protocol: 7, Version: "v7.0.0", Settings: []pmi.Setting{{Name: "MUSTER_ON_FAILURE", Value: pmi.OnFailureReturn}}}

// roleSecondFence: rank 1 dies after the first fence. The others enter a second one.
func roleSecondFence(c pmi.Client) int {
	if err := c.Fence(context.Background()); err != nil {
		return complain(err)
	}
	if c.Rank() == 1 {
		return 7
	}
	if c.Rank() == 2 { // after the failure
		for c.Board().Deaths() == 0 {
			time.Sleep(time.Millisecond) // poll shared memory
		}
	}
	fmt.Println("second fence:", c.Fence(context.Background()))
	return 3
}

// A rank that fails between two fences ends the job, although it is to survive failures: a
// fence needs all ranks.
func TestFailureBetweenFences(t *testing.T) {
	for _, hosts := range []string{"", "a:2,b:2"} {
		var r jobRun
		if hosts == "" {
			r = runRole(t, "second-fence", Config{Ranks: 4})
		} else {
			r = onHosts(t, "second-fence", hosts, Config{})
		}
		if r.Status != 7 || !strings.Contains(r.Cause, "rank 1 (pid ") || strings.Count(r.out, "rank 1 on ") != 3 {
			t.Errorf("hosts %q: the three other ranks must get an error that names rank 1: %+v", hosts, r)
		}
	}
}

// roleUnreachable: all others report that they do not reach the last rank, and then wait until
// it counts as failed. It leaves only if it is told so.
func roleUnreachable(c pmi.Client) int {
	if err := c.Fence(context.Background()); err != nil {
		return complain(err)
	}
	last := c.Size() - 1
	if c.Rank() != last {
		c.(interface{ Unreachable(rank int) }).Unreachable(last)
	}
	for c.Board().Deaths() == 0 {
		time.Sleep(time.Millisecond) // poll shared memory
	}
	if d, ok := c.Board().Dead(c.Rank()); ok {
		fmt.Println("this rank counts as failed:", d.Status)
		if os.Getenv("STAY") != "" {
			time.Sleep(20 * time.Second) // until it is killed
		}
		return 1
	}
	d, _ := c.Board().Death(0)
	fmt.Printf("rank %d counts as failed\n", d.Rank)
	return leave(c)
}

// A rank that others do not reach, while the launcher does, counts as failed. If it does not
// leave, it is killed.
func TestUnreachableRank(t *testing.T) {
	for _, hosts := range []string{"", "a:2,b:1,c:1"} {
		for _, stay := range []string{"", "STAY=1"} {
			cfg := Config{ExtraEnv: []string{stay}, Remote: Remote{pingEvery: 20 * time.Millisecond}}
			if stay == "" {
				cfg.ExtraEnv = nil
			}
			var r jobRun
			if hosts == "" {
				cfg.Ranks = 4
				r = runRole(t, "unreachable", cfg)
			} else {
				cfg.Remote.pingEvery = 200 * time.Millisecond // the bound must not be too short for agents
				r = onHosts(t, "unreachable", hosts, cfg)
			}
			if r.Status != 0 || strings.Count(r.out, "rank 3 counts as failed") != 3 || !strings.Contains(r.err, "unreachable over the network for rank") ||
				!strings.Contains(r.err, "the job continues with 3 ranks") {
				t.Errorf("hosts %q: the job must go on without rank 3: %+v", hosts, r)
			}
			if !strings.Contains(r.out, "this rank counts as failed: unreachable over the network") {
				t.Errorf("hosts %q: rank 3 must learn that it counts as failed: %+v", hosts, r)
			}
			if r.took > slow*10*time.Second {
				t.Errorf("hosts %q: it took %v", hosts, r.took)
			}
		}
	}
}

func roleSurvive(c pmi.Client) int {
	if err := c.Fence(context.Background()); err != nil {
		return complain(err)
	}
	fmt.Println("ready")
	time.Sleep(20 * time.Second) // until it is killed
	return leave(c)
}

// A signal of the user ends a job that survives failures, as any other.
func TestSignalEndsSurvivors(t *testing.T) {
	out, signals := new(watched), make(chan os.Signal, 1)
	go func() {
		out.await(t, "ready", 3)
		signals <- syscall.SIGTERM
	}()
	r := runRole(t, "survive", Config{Ranks: 3, Output: Output{Stdout: out}, Signals: signals})
	if r.Status != 128+int(syscall.SIGTERM) || r.Cause != "the job was ended by SIGTERM" || strings.Contains(r.err, "continues") {
		t.Errorf("the job must end because of the signal: %+v", r)
	}
}

// roleLateDeath: the ranks leave the job in order. Those in LATE then kill themselves, or exit
// with the status that it gives them.
func roleLateDeath(c pmi.Client) int {
	if err := c.Fence(context.Background()); err != nil {
		return complain(err)
	}
	if status := leave(c); status != 0 {
		return status
	}
	for _, how := range strings.Fields(os.Getenv("LATE")) {
		rank, status, exits := strings.Cut(how, ":")
		switch {
		case rank != fmt.Sprint(c.Rank()):
		case exits:
			n, _ := strconv.Atoi(status)
			return n
		default:
			killSelf()
			select {}
		}
	}
	return 0
}

// A rank that is killed after Finalize has failed. A job that survives failures has status 0 if
// another one leaves in order. A status that a program returns after Finalize is its result.
func TestDeathAfterFinalize(t *testing.T) {
	const killed = 128 + int(syscall.SIGKILL)
	for _, c := range []struct {
		late    string
		status  int
		notices int
	}{
		{"1", 0, 1},
		{"0 1", 0, 2},
		{"0 1 2", killed, 2},
		{"1:6", 6, 0},
		{"0 1:6 2", 6, 2},
	} {
		for _, hosts := range []string{"", "a:2,b:1"} {
			cfg := Config{Ranks: 3, ExtraEnv: []string{"LATE=" + c.late}}
			var r jobRun
			if hosts == "" {
				r = runRole(t, "late-death", cfg)
			} else {
				r = onHosts(t, "late-death", hosts, cfg)
			}
			if r.Status != c.status || (r.Cause == "") != (c.status == 0) {
				t.Errorf("hosts %q, late %q: want status %d: %+v", hosts, c.late, c.status, r)
			}
			if n := strings.Count(r.err, "after Finalize: killed by SIGKILL"); n < c.notices {
				t.Errorf("hosts %q, late %q: the launcher must report the %d deaths: %+v", hosts, c.late, c.notices, r)
			}
		}
	}
}
