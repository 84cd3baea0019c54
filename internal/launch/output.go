package launch

// Output of the ranks: stdout and stderr of each rank are pipes, each read by a goroutine
// that forwards whole lines. One lock for both streams keeps lines of different ranks
// apart, also when both streams go to the same terminal.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// sink merges the lines of all ranks.
type sink struct {
	lock    *sync.Mutex // shared by the sinks of a job
	w       io.Writer
	scratch []byte
	failed  bool
}

// write writes whole lines, each after its label, or unchanged bytes if there is no
// label, in one call of Write.
func (s *sink) write(label, text []byte) {
	if len(text) == 0 {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.failed {
		return // the reader is gone; the rank must not block on it
	}
	out := text
	if len(label) > 0 {
		s.scratch = appendLabelled(s.scratch[:0], label, text)
		out = s.scratch
	}
	if _, err := s.w.Write(out); err != nil {
		s.failed = true
	}
}

// labelled returns write with a label for each line.
func (s *sink) labelled(label []byte) func(text []byte) {
	return func(text []byte) { s.write(label, text) }
}

func appendLabelled(dst, label, text []byte) []byte {
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			end = len(text)
		}
		dst = append(append(dst, label...), text[:end]...)
		text = text[end:]
	}
	if dst[len(dst)-1] != '\n' {
		dst = append(dst, '\n')
	}
	return dst
}

// rankLabel returns the label of a rank; all labels of a job have the same width.
func rankLabel(rank, ranks int) []byte {
	return fmt.Appendf(nil, "[%*d] ", len(strconv.Itoa(ranks-1)), rank)
}

const (
	lineBufferStart = 4 << 10
	lineBufferRead  = 64 << 10 // buffer of a busy rank
	// maxHeldLine limits the memory for a line: a longer one is forwarded in pieces.
	maxHeldLine = 1 << 20
)

// copyLines forwards the data of r, whole lines at a time, until it ends.
func copyLines(write func(lines []byte), r io.Reader) {
	buf := make([]byte, 0, lineBufferStart)
	for {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		fresh := buf[len(buf) : len(buf)+n]
		whole := len(buf) + bytes.LastIndexByte(fresh, '\n') + 1
		full := n == cap(buf)-len(buf)
		held := len(buf)
		buf = buf[:len(buf)+n]
		switch {
		case err != nil || len(buf) >= maxHeldLine:
			whole = len(buf)
		case whole == held:
			continue // no line has ended
		}
		write(buf[:whole])
		buf = buf[:copy(buf, buf[whole:])]
		if err != nil {
			return
		}
		if full && cap(buf) < lineBufferRead {
			buf = append(make([]byte, 0, lineBufferRead), buf...)
		}
	}
}

// pipeEnd reads a rank's pipe. After a read deadline, which the launcher sets when the
// job has ended, it returns the data already in the pipe and then io.EOF: a child process
// of a rank may hold the other end for ever, but a slow terminal must not lose lines.
type pipeEnd struct {
	f    *os.File
	last bool
}

func (p *pipeEnd) Read(buf []byte) (int, error) {
	if !p.last {
		n, err := p.f.Read(buf)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		p.last = true
		p.f.SetReadDeadline(time.Time{})
	}
	conn, err := p.f.SyscallConn()
	if err != nil {
		return 0, err
	}
	n := 0
	ctlErr := conn.Read(func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), buf)
		return true
	})
	if ctlErr != nil || err != nil || n <= 0 {
		return 0, io.EOF
	}
	return n, nil
}
