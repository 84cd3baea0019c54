package mpitest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// filterVar makes TestFiltered do something.
const filterVar = "MPITEST_FILTERED"

// TestRanksBesidesTheFilter: flags of the go command that exclude subtests must not
// exclude ranks, because the others wait for them.
func TestRanksBesidesTheFilter(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("starts processes")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		do   string
		want []string
	}{
		{[]string{"-test.run=^TestFiltered$/^rank=1$"}, "pass", []string{"the sum of 4 ranks is 6", "--- PASS: TestFiltered/rank=1"}},
		{[]string{"-test.run=^TestFiltered$/^other$"}, "pass", []string{"the sum of 4 ranks is 6", "--- PASS: TestFiltered"}},
		{[]string{"-test.run=^TestFiltered$", "-test.skip=/rank=[0-2]"}, "pass", []string{"the sum of 4 ranks is 6", "--- PASS: TestFiltered/rank=3"}},
		{[]string{"-test.run=^TestFiltered$", "-test.failfast"}, "fail", []string{"on purpose", "the sum of 4 ranks is 6"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			cmd := exec.Command(self, append(c.args, "-test.v")...)
			cmd.Env = append(os.Environ(), filterVar+"="+c.do)
			out, err := cmd.CombinedOutput()
			if pass := err == nil; pass != (c.do == "pass") {
				t.Errorf("the test must %s", c.do)
			}
			for _, s := range c.want {
				if !strings.Contains(string(out), s) {
					t.Errorf("it does not print %q", s)
				}
			}
			if t.Failed() {
				t.Logf("%v:\n%s", err, out)
			}
		})
	}
}

// TestFiltered is what TestRanksBesidesTheFilter starts.
func TestFiltered(t *testing.T) {
	switch os.Getenv(filterVar) {
	case "":
		t.Skip("runs as a part of TestRanksBesidesTheFilter")
	case "fail":
		t.Run("first", func(t *testing.T) { t.Error("on purpose") })
	}
	mpitest.Run(t, 4, func(t *testing.T, world *mpi.Comm) {
		sum := []int{world.Rank()}
		if err := mpi.Allreduce(world, nil, sum, mpi.Sum); err != nil {
			t.Error(err)
		}
		if world.Rank() == 0 {
			t.Logf("the sum of %d ranks is %d", world.Size(), sum[0])
		}
	})
}
