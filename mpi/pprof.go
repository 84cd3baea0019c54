package mpi

// A CPU profile of each rank (Config.PProf). It covers the time from Init to Finalize, so
// that it shows the program and not how it was started.

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync"
)

// startCPUProfile starts the profile of a rank that is a process; the runtime has one
// profile for all goroutines. The returned function ends it; it may be called twice.
func startCPUProfile(dir string, rank int) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	fail := func(err error) (func() error, error) {
		return nil, fmt.Errorf("mpi: Config.PProf (MUSTER_PPROF) is %q: %w; name a directory that can be written", dir, err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fail(err)
	}
	file, err := os.Create(filepath.Join(dir, fmt.Sprintf("rank-%d.pprof", rank)))
	if err != nil {
		return fail(err)
	}
	if err := pprof.StartCPUProfile(file); err != nil { // the program itself has started one
		file.Close()
		return fail(err)
	}
	return sync.OnceValue(func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}), nil
}
