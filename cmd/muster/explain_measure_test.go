//go:build !windows

package main

import (
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/coll"
)

func TestPrintMeasured(t *testing.T) {
	var b strings.Builder
	if err := printMeasured(&b, []measuredChoice{{"ring", 1e-3, 3e-3}, {"direct", 2e-3, 1.5e-3}}); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"   algorithm  estimated  measured  measured/estimated  measured/best\n" +
		"*  ring       1 ms       3 ms      3.00                2.00\n" +
		"   direct     2 ms       1.5 ms    0.75                1.00\n"
	if b.String() != want {
		t.Errorf("printed\n%s, want\n%s", b.String(), want)
	}
}

func TestCanMeasure(t *testing.T) {
	for _, c := range []struct {
		kind coll.Kind
		size int
		want string
	}{
		{coll.Allreduce, 64, ""},
		{coll.Allreduce, -1, "--measure needs a size"},
		{coll.Barrier, 0, "--measure supports allgather"},
	} {
		err := canMeasure(c.kind, c.size)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %d bytes: %v, want %q", c.kind, c.size, err, c.want)
		}
	}
}

func TestExplainBudgetNeedsMeasure(t *testing.T) {
	got := muster(t, t.TempDir(), "explain", "allreduce", "--size", "1K", "--budget", "50ms")
	if got.status == 0 || !strings.Contains(got.err, "add --measure") {
		t.Errorf("--budget without --measure: %+v", got)
	}
}

// TestExplainMeasure measures in a real job.
func TestExplainMeasure(t *testing.T) {
	got := muster(t, t.TempDir(), "explain", "allreduce", "--size", "1K", "-n", "2", "--measure", "--budget", "50ms")
	if !strings.Contains(got.out, "allreduce of 1024 bytes among 2 ranks") || !strings.Contains(got.out, "measured/estimated") {
		t.Errorf("it prints\n%+v", got)
	}
}
