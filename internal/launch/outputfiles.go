package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// outputFiles writes the output of each rank to two files of a directory.
type outputFiles struct {
	dir    string
	ranks  int
	failed func(error) // called once, for the first error

	mu    sync.Mutex
	open  []*os.File
	err   error // the first one; nothing is written after it
	ended bool
}

// createOutput creates the directory and empty files for all ranks, so that errors are
// found before the job starts and no file is of an earlier job.
func createOutput(dir string, ranks int, failed func(error)) (*outputFiles, error) {
	o := &outputFiles{dir: dir, ranks: ranks, failed: failed}
	err := os.MkdirAll(dir, 0o777)
	for rank := 0; rank < ranks && err == nil; rank++ {
		for _, isStderr := range []bool{false, true} {
			if err == nil {
				err = os.WriteFile(o.name(rank, isStderr), nil, 0o666)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("launch: directory for output: %w", err)
	}
	return o, nil
}

// name returns the name of a file. All names have the same length, so that they sort by
// rank.
func (o *outputFiles) name(rank int, isStderr bool) string {
	suffix := ".out"
	if isStderr {
		suffix = ".err"
	}
	return filepath.Join(o.dir, fmt.Sprintf("rank-%0*d%s", len(strconv.Itoa(o.ranks-1)), rank, suffix))
}

// writer returns the function that writes a rank's output, unchanged. It opens the file
// when there is some, because most ranks of a large job print nothing.
func (o *outputFiles) writer(rank int, isStderr bool) func(text []byte) {
	var file *os.File
	return func(text []byte) {
		if len(text) == 0 {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err != nil || o.ended {
			return
		}
		var err error
		if file == nil {
			if file, err = os.OpenFile(o.name(rank, isStderr), os.O_WRONLY|os.O_APPEND, 0); err == nil {
				o.open = append(o.open, file)
			}
		}
		if err == nil {
			_, err = file.Write(text)
		}
		if err != nil {
			o.failLocked(err)
		}
	}
}

func (o *outputFiles) failLocked(err error) {
	o.err = err
	o.failed(err)
}

// close closes the files and returns the first error of all writers.
func (o *outputFiles) close() error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.open {
		if err := f.Close(); err != nil && o.err == nil {
			o.failLocked(err)
		}
	}
	o.open, o.ended = nil, true
	return o.err
}
