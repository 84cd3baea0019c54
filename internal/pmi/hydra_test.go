package pmi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// roleEnv makes the test binary act as a rank program.
const roleEnv = "PMI_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := playRank(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func playRank(role string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := Open(ctx, os.Getenv, Terms{})
	if err != nil {
		return err
	}
	if role == "abort" {
		if c.Rank() == 1 {
			c.Abort(17, "on purpose")
		}
		time.Sleep(10 * time.Second) // until the launcher kills it
		return nil
	}
	if role == "hear" {
		err := c.Fence(ctx)
		if dead, ok := errors.AsType[*DeadError](err); ok {
			// The abort of rank 1, which leaves the fence first, arrived before
			// the end of the fence.
			fmt.Printf("rank %d %s\n", dead.Rank, dead.Status)
			return nil
		}
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			c.Abort(17, "on purpose")
			return nil
		}
		for ctx.Err() == nil {
			if d, ok := c.Died(); ok {
				fmt.Printf("rank %d %s\n", d.Rank, d.Status)
				return nil
			}
			time.Sleep(time.Millisecond) // poll
		}
		return ctx.Err()
	}
	val := strings.Repeat(fmt.Sprintf("%d ", c.Rank()), 700)
	if err := c.Put("v", []byte(val)); err != nil {
		return err
	}
	if err := c.Fence(ctx); err != nil {
		return err
	}
	for r := range c.Size() {
		got, err := c.Get(ctx, r, "v")
		if err != nil {
			return err
		}
		if want := strings.Repeat(fmt.Sprintf("%d ", r), 700); string(got) != want {
			return fmt.Errorf("rank %d sent %d bytes, want %d", r, len(got), len(want))
		}
	}
	if err := c.Fence(ctx); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d, %d of %d on node %d\n", c.Rank(), c.Size(), c.LocalRank(), c.LocalSize(), c.Node(c.Rank()))
	return c.Close()
}

func hydra(t *testing.T, role string, args ...string) (string, error) {
	t.Helper()
	mpiexec, err := exec.LookPath("mpiexec.hydra")
	if err != nil {
		t.Skip("mpiexec.hydra is not installed (Debian package mpich)")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, mpiexec, append(args, self)...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestUnderHydra(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"-n", "4"}, []string{"rank 0 of 4, 0 of 4 on node 0", "rank 3 of 4, 3 of 4 on node 0"}},
		{[]string{"-pmi-port", "-n", "2"}, []string{"rank 0 of 2", "rank 1 of 2"}},
		{[]string{"-launcher", "fork", "-hosts", "hostA,hostB", "-n", "4"}, []string{"rank 2 of 4, 1 of 2 on node 0", "rank 3 of 4, 1 of 2 on node 1"}},
	} {
		out, err := hydra(t, "exchange", c.args...)
		if err != nil {
			t.Errorf("mpiexec.hydra %v: %v\n%s", c.args, err, out)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("mpiexec.hydra %v must print %q; it printed\n%s", c.args, want, out)
			}
		}
	}
}

func TestAbortUnderHydra(t *testing.T) {
	start := time.Now()
	out, err := hydra(t, "abort", "-n", "2")
	var exit *exec.ExitError
	if e, ok := err.(*exec.ExitError); ok {
		exit = e
	}
	if exit == nil || exit.ExitCode() != 17 || time.Since(start) > 8*time.Second {
		t.Errorf("an abort must end a job under Hydra with its code, 17, at once; got %v after %v\n%s", err, time.Since(start), out)
	}
}
