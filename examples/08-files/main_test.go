package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// TestRestart checks that two jobs of different sizes compute what one of twice the steps does.
func TestRestart(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("needs jobs of several numbers of ranks")
	}
	var results []string
	for _, ranks := range [][]int{{1, 1}, {4, 6}, {5, 2}} {
		name := filepath.Join(t.TempDir(), "plate")
		for _, n := range ranks {
			mpitest.Run(t, n, func(t *testing.T, world *mpi.Comm) {
				var out strings.Builder
				if err := run(world, name, &out); err != nil {
					t.Fatal(err)
				}
				if world.Rank() == 0 {
					results = append(results, out.String())
				}
			})
		}
	}
	for i, got := range results {
		if want := results[i%2]; got != want {
			t.Errorf("job %d prints %q, want %q", i, got, want)
		}
	}
	if !strings.HasPrefix(results[1], "steps 200 to 400: the mean temperature is ") {
		t.Errorf("the second job prints %q", results[1])
	}
}
