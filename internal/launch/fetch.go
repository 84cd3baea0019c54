package launch

// Fetching a file that rank 0 writes when the job ends, such as a trace. On several hosts:
//
//	the agent of rank 0's host   makes a temporary directory and sets the variable to a
//	                             file in it; when its ranks have ended it sends the
//	                             file in pieces, before the end of its output
//	the launcher                 writes the pieces to the file that the user has named
//
// The pieces count as output, so they wait at the agent until the launcher has written them.
// On one host rank 0 writes the file itself.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Fetch describes the file.
type Fetch struct {
	Env  string // variable that names the file to rank 0
	File string // its absolute name for the launcher
}

// fetchPiece is the size of a piece, smaller than the window of output.
const fetchPiece = 64 << 10

// prepareFetch returns the variable for the ranks of this host, if rank 0 is among them.
func (a *agent) prepareFetch(env []string, ranks []int) ([]string, error) {
	f := a.spec.Fetch
	if f.Env == "" || !slices.Contains(ranks, 0) {
		return env, nil
	}
	dir, err := os.MkdirTemp("", "muster-fetch-")
	if err != nil {
		return nil, fmt.Errorf("a directory for the file that rank 0 writes: %w; set TMPDIR to a writable directory there", err)
	}
	a.mu.Lock()
	a.fetched = filepath.Join(dir, filepath.Base(f.File))
	a.mu.Unlock()
	return append(env, f.Env+"="+a.fetched), nil
}

// sendFetched sends the file that rank 0 has written, if any.
func (a *agent) sendFetched() {
	a.mu.Lock()
	name := a.fetched
	a.mu.Unlock()
	if name == "" {
		return
	}
	defer a.removeFetched()
	file, err := os.Open(name)
	if err != nil {
		return // rank 0 has written none, which the launcher reports
	}
	defer file.Close()
	for {
		piece := make([]byte, fetchPiece)
		n, err := io.ReadFull(file, piece)
		if n > 0 && a.out.take(n) {
			a.sendUp(frameFile, piece[:n])
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				a.sendUp(frameNotice, []byte(fmt.Sprintf("read the file that rank 0 has written: %v", err)))
			}
			return
		}
	}
}

// removeFetched removes the directory.
func (a *agent) removeFetched() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fetched != "" {
		os.RemoveAll(filepath.Dir(a.fetched))
		a.fetched = ""
	}
}

// writeFetched appends a piece to the file of the user. It reports the first error and drops
// the rest.
func (b *remoteBackend) writeFetched(piece []byte) {
	if b.fetchErr != nil {
		return
	}
	flags := os.O_WRONLY | os.O_APPEND | os.O_CREATE
	if b.fetchedBytes == 0 {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(b.cfg.Remote.Fetch.File, flags, 0o666)
	if err == nil {
		_, err = f.Write(piece)
		err = errors.Join(err, f.Close())
	}
	b.fetchedBytes += len(piece)
	if b.fetchErr = err; err != nil {
		b.job.notice(fmt.Sprintf("write the file from rank 0: %v", err))
	}
}
