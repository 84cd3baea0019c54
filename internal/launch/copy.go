package launch

// Programs that are sent to the hosts with the job (Remote.Copy). The launcher sends the
// files in pieces ahead of the job, down the tree of agents; each agent writes them to
// temporary directories, runs them from there, and removes them when it ends.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// copyPiece is the size of a piece. After each, the sender waits until it is written,
	// because a link keeps everything in memory that was not.
	copyPiece = 1 << 20
	// copyTimeout is how long it waits for one piece; a host that has not read it by
	// then is found by its pings.
	copyTimeout = 30 * time.Second
)

// copiedFiles returns the distinct files of programs, and for each program the index of
// its file.
func copiedFiles(programs []Program) (files []string, of []int) {
	for _, p := range programs {
		i := slices.Index(files, p.Prog)
		if i < 0 {
			i = len(files)
			files = append(files, p.Prog)
		}
		of = append(of, i)
	}
	return files, of
}

// sendPrograms sends the files to all agents.
func (b *remoteBackend) sendPrograms(files []string) error {
	for i, path := range files {
		if err := b.sendProgram(i, path); err != nil {
			return fmt.Errorf("launch: copy the program to the hosts: %w", err)
		}
	}
	return nil
}

func (b *remoteBackend) sendProgram(index int, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, copyPiece)
	sent := 0
	for {
		n, err := io.ReadFull(f, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		b.toAll(frameProgram, programBody(index, filepath.Base(path), buf[:n]))
		flushAll(b.all(), copyTimeout)
		if sent += n; err != nil {
			b.job.log.Info("program copied", "program", path, "bytes", sent)
			return nil
		}
	}
}

// flushAll waits until everything sent to the agents has been written, or the timeout,
// which is for all of them together. It reports whether everything has been written.
func flushAll(agents []*branch, timeout time.Duration) bool {
	end, all := time.Now().Add(timeout), true
	for _, br := range agents {
		all = br.flush(time.Until(end)) && all
	}
	return all
}

func programBody(index int, name string, piece []byte) []byte {
	w := make(bodyWriter, 0, 16+len(name)+len(piece))
	w.number(int64(index))
	w.text(name)
	return append(w, piece...)
}

func readProgram(body []byte) (index int, name string, piece []byte, err error) {
	r := bodyReader{rest: body}
	index, name = int(r.number()), r.text()
	if err := r.err(); err != nil {
		return 0, "", nil, err
	}
	if index < 0 || name != filepath.Base(name) || name == "." || name == ".." || name == "/" {
		return 0, "", nil, fmt.Errorf("invalid program %d %q", index, name)
	}
	return index, name, r.rest, nil
}

// copies are the programs that an agent has received.
type copies struct {
	paths []string // by index
	err   error    // the first one
}

// add writes a piece. An error is kept for the start of the ranks, which reports it.
func (c *copies) add(index int, name string, piece []byte) {
	if c.err != nil {
		return
	}
	if index == len(c.paths) {
		dir, err := os.MkdirTemp("", "muster-copy-")
		if err != nil {
			c.err = fmt.Errorf("copy %s: %w; set TMPDIR to a writable directory there", name, err)
			return
		}
		c.paths = append(c.paths, filepath.Join(dir, name))
	}
	if index != len(c.paths)-1 {
		c.err = fmt.Errorf("copy %s: pieces of program %d after program %d", name, index, len(c.paths)-1)
		return
	}
	f, err := os.OpenFile(c.paths[index], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o700)
	if err == nil {
		_, err = f.Write(piece)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		c.err = fmt.Errorf("copy %s: %w", name, err)
	}
}

// path returns the copy of a file.
func (c *copies) path(index int) (string, error) {
	if c.err == nil && (index < 0 || index >= len(c.paths)) {
		return "", fmt.Errorf("program %d was not copied", index)
	}
	if c.err != nil {
		return "", c.err
	}
	return c.paths[index], nil
}

// remove removes all copies.
func (c *copies) remove() {
	for _, p := range c.paths {
		os.RemoveAll(filepath.Dir(p))
	}
	c.paths = nil
}
