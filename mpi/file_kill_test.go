package mpi_test

// Ranks that are killed in collective writes: what the others have written must be in the file, and the
// last checkpoint can be read.

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/muster-mpi/muster/internal/seeded"
	"github.com/muster-mpi/muster/mpi"
)

const killFilesProgram = "kill in files "

// writeTogether returns a call in which the ranks write pieces of a file in turn. If it fails, the rank checks that
// the file has what it has written.
func writeTogether(c *mpi.Comm, piece int, hints mpi.FileHints) (func(n int) error, error) {
	const pieces = 1 << 10
	name, err := temporaryName(c)
	if err != nil {
		return nil, err
	}
	f, err := c.OpenFile(name, os.O_RDWR|os.O_CREATE, hints)
	if err != nil {
		return nil, err
	}
	if c.Rank() == 0 {
		if err := os.Remove(name); err != nil { // it exists as long as it is open
			return nil, err
		}
	}
	l, err := mpi.Vector[byte](1, piece, piece)
	if err == nil {
		l, err = l.Resized(piece * c.Size())
	}
	if err != nil {
		return nil, err
	}
	v, err := mpi.OpenView(f, int64(piece*c.Rank()), l)
	if err != nil {
		return nil, err
	}
	return func(n int) error {
		mine := slices.Repeat([]byte{byte(c.Rank() + n)}, piece*pieces)
		_, err := v.WriteAtAll(mine, 0)
		if err == nil {
			return nil
		}
		got := make([]byte, len(mine))
		if k, err := v.ReadAt(got, 0); k != len(got) || err != nil && err != io.EOF {
			return fmt.Errorf("%d of %d bytes are in the file: %v", k, len(got), err)
		}
		for i, b := range got {
			if b != mine[i] {
				return fmt.Errorf("byte %d of repetition %d is %d, want %d, after: %w", i, n, b, mine[i], err)
			}
		}
		return err
	}, nil
}

// temporaryName returns the name of a file that does not exist, the same on all ranks.
func temporaryName(c *mpi.Comm) (string, error) {
	dir := os.Getenv(killDir)
	if dir == "" {
		dir = os.TempDir()
	}
	return mpi.BcastValue(c, filepath.Join(dir, fmt.Sprintf("muster-kill-%d-%d", os.Getpid(), time.Now().UnixNano())), 0)
}

// killInFiles kills ranks, one after the other, at random times in writes of random pieces: "SEED KILLS".
func killInFiles(world *mpi.Comm, program string) error {
	var seed uint64
	var kills int
	if _, err := fmt.Sscan(program, &seed, &kills); err != nil {
		return err
	}
	saved, err := temporaryName(world)
	if err != nil {
		return err
	}
	c, left := world, make([]int, world.Size())
	for r := range left {
		left[r] = r
	}
	for k := range kills {
		random := seeded.New(seed + uint64(k)) // the same on all ranks
		piece := 8 << random.IntN(8)
		hints := mpi.FileHints{CollectiveWrite: "always", BufferSize: 1<<10 + random.IntN(64<<10), Aggregators: random.IntN(4)}
		victim := random.IntN(c.Size())
		delay := time.Duration(random.IntN(15_000)) * time.Microsecond
		if err := mpi.CheckpointFile(c, saved, k+1, []int{c.Rank(), k}); err != nil {
			return fmt.Errorf("kill %d: %w", k, err)
		}
		size := c.Size()
		c, _, err = killStep{victim, left[victim], delay, ""}.run(c, func(c *mpi.Comm, _ int) (func(int) error, error) { return writeTogether(c, piece, hints) })
		if err != nil {
			return fmt.Errorf("kill %d, of rank %d after %v, pieces of %d bytes, %+v: %w", k, victim, delay, piece, hints, err)
		}
		left = slices.Delete(left, victim, victim+1)
		version, parts, err := mpi.RestoreFile[int](c, saved)
		if err != nil || version != k+1 {
			return fmt.Errorf("kill %d: version %d of the checkpoint, want %d: %w", k, version, k+1, err)
		}
		for _, p := range parts {
			if p.Size != size || !slices.Equal(p.Data[0], []int{p.Rank, k}) {
				return fmt.Errorf("kill %d: the part of rank %d of %d is %v", k, p.Rank, p.Size, p.Data)
			}
		}
	}
	if c.Rank() == 0 {
		fmt.Printf("%d kills, %d ranks left\n", kills, c.Size())
		return os.Remove(saved)
	}
	return nil
}
