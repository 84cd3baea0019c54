package mpi_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// TestCheckpointFile saves with one number of ranks and restores with others.
func TestCheckpointFile(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("needs jobs of several numbers of ranks")
	}
	name := filepath.Join(t.TempDir(), "checkpoint")
	for _, ranks := range []int{1, 4, 5} {
		mpitest.Run(t, ranks, func(t *testing.T, c *mpi.Comm) {
			for v := 1; v <= 2; v++ {
				noError(t, mpi.CheckpointFile(c, name, v, saved(v, c.Rank())...), "CheckpointFile")
			}
		})
		for _, later := range []int{1, 3, ranks, 7} {
			mpitest.Run(t, later, func(t *testing.T, c *mpi.Comm) {
				version, parts, err := mpi.RestoreFile[int](c, name)
				noError(t, err, "RestoreFile")
				first, end := c.Rank()*ranks/later, (c.Rank()+1)*ranks/later
				if version != 2 || len(parts) != end-first {
					t.Fatalf("version %d, %d parts; want 2, %d", version, len(parts), end-first)
				}
				for i, p := range parts {
					if p.Rank != first+i || p.Size != ranks {
						t.Errorf("part %d is that of rank %d of %d", i, p.Rank, p.Size)
					}
					noError(t, isSaved(p, 2), "RestoreFile")
				}
			})
		}
	}
	if left, _ := filepath.Glob(name + ".*"); len(left) > 0 {
		t.Errorf("the files %v are left", left)
	}
}

// TestDamagedCheckpointFile changes each byte of a file, and cuts it off.
func TestDamagedCheckpointFile(t *testing.T) {
	if mpitest.Launched() {
		t.Skip("changes a file between jobs")
	}
	name := filepath.Join(t.TempDir(), "checkpoint")
	mpitest.Run(t, 1, func(t *testing.T, c *mpi.Comm) {
		noError(t, mpi.CheckpointFile(c, name, 1, []int32{1, 2, 3}), "CheckpointFile")
		whole, err := os.ReadFile(name)
		noError(t, err, "ReadFile")
		refuse := func(b []byte, what string) {
			noError(t, os.WriteFile(name, b, 0o600), "WriteFile")
			_, _, err := mpi.RestoreFile[int32](c, name)
			wantClass(t, err, mpi.ErrIO, what)
		}
		for i := range whole {
			whole[i] ^= 0x80
			refuse(whole, "a changed byte")
			whole[i] ^= 0x80
		}
		for n := range whole {
			refuse(whole[:n], "a short file")
		}
		noError(t, os.WriteFile(name, whole, 0o600), "WriteFile")
		_, _, err = mpi.RestoreFile[int32](c, name)
		noError(t, err, "RestoreFile")
	})
}
