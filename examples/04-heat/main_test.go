package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// alone computes the plate serially.
func alone() [rows][columns]float64 {
	var now [rows][columns]float64
	for c := range columns {
		now[0][c] = hot
	}
	for range steps {
		next := now
		for r := 1; r < rows-1; r++ {
			for c := 1; c < columns-1; c++ {
				next[r][c] = (now[r][c-1] + now[r][c+1] + now[r-1][c] + now[r+1][c]) / 4
			}
		}
		now = next
	}
	return now
}

func TestMatchesSerialPlate(t *testing.T) {
	want := alone()
	mpitest.Sizes(t, []int{1, 2, 3, 4, 5}, func(t *testing.T, world *mpi.Comm) {
		p, err := newPlate(world)
		if err != nil {
			t.Fatal(err)
		}
		for range steps {
			if err := p.step(); err != nil {
				t.Fatal(err)
			}
		}
		for r := range rows {
			for c := 1; c < p.width-1; c++ {
				if got, want := p.now[r*p.width+c], want[r][p.first+c-1]; math.Abs(got-want) > 1e-12 {
					t.Fatalf("rank %d: row %d, column %d is %v, want %v", world.Rank(), r, p.first+c-1, got, want)
				}
			}
		}
	})
}

// TestContinues checks that a run on three ranks continues from the checkpoint of four.
func TestContinues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plate.ckpt")
	output := func(ranks int, file string) (text string) {
		mpitest.Run(t, ranks, func(t *testing.T, world *mpi.Comm) {
			var out strings.Builder
			if err := run(world, file, &out); err != nil {
				t.Fatal(err)
			}
			if world.Rank() == 0 {
				text = out.String()
			} else if out.Len() > 0 {
				t.Errorf("rank %d prints %q", world.Rank(), out.String())
			}
		})
		return text
	}
	mpitest.Run(t, 4, func(t *testing.T, world *mpi.Comm) {
		p, err := newPlate(world)
		for err == nil && p.done < 2*every {
			err = p.step()
		}
		if err == nil {
			err = p.save(file)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	want := output(2, "")
	if got := output(3, file); got != want || !strings.HasPrefix(got, "after 500 steps the mean temperature is ") {
		t.Errorf("continued: %q, want %q", got, want)
	}
	if text, err := os.ReadFile(file); err != nil || len(text) != 8*(1+rows*columns) || text[0] != steps%256 {
		t.Errorf("the last checkpoint: %d bytes, %v", len(text), err)
	}
	if err := os.Truncate(file, 100); err != nil {
		t.Fatal(err)
	}
	mpitest.Run(t, 1, func(t *testing.T, world *mpi.Comm) {
		if err := run(world, file, new(strings.Builder)); err == nil {
			t.Error("a part of a checkpoint must be refused")
		}
	})
}
