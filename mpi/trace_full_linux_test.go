package mpi_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// TestTraceOnFullDisk fills the disk before the trace is written. All ranks leave the job,
// and only rank 0 returns an error. The records of a rank are longer than an eager message, so
// each rank waits until rank 0 has received them.
func TestTraceOnFullDisk(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"no space":  func(file string) error { return errors.Join(os.Remove(file), os.Symlink("/dev/full", file)) },
		"no folder": func(file string) error { return os.RemoveAll(filepath.Dir(file)) },
	} {
		for _, suffix := range []string{".json", ".json.gz"} {
			t.Run(name+suffix, func(t *testing.T) { traceOn(t, filepath.Join(t.TempDir(), "folder", "out"+suffix), spoil) })
		}
	}
}

func traceOn(t *testing.T, file string, spoil func(file string) error) {
	if err := os.Mkdir(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	const ranks = 3
	worlds, err := mpi.Local(ranks, &mpi.Config{Trace: file})
	if err != nil {
		t.Fatal(err)
	}
	if err := spoil(file); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var left [ranks]error
	for i, w := range worlds {
		wg.Go(func() {
			if err := talk(w.Comm()); err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
			left[i] = w.Finalize()
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("ranks wait in Finalize for a rank that could not write the trace")
	}
	if err := left[0]; !errors.Is(err, mpi.ErrOther) || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "MUSTER_TRACE") {
		t.Errorf("rank 0 must return an error with the file %s, the cause and what to do: %v", file, err)
	}
	for i := 1; i < ranks; i++ {
		if left[i] != nil {
			t.Errorf("rank %d left the job in order, but returned %v", i, left[i])
		}
	}
}
