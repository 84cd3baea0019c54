package launch

// Output of the ranks: stdout and stderr of each rank are pipes, read by a poller that
// forwards whole lines, and progress displays with carriage returns. One lock for both
// streams keeps lines of different ranks apart, also when both go to the same terminal.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
)

// screen is shared by the sinks of a job, which may write to the same terminal.
type screen struct {
	sync.Mutex
	// open is the stream whose last line is not complete: a progress display that is
	// rewritten after carriage returns. The lines of others must not continue it.
	open *stream
}

// sink merges the lines of all ranks.
type sink struct {
	screen   *screen
	w        io.Writer
	terminal bool
	scratch  []byte
	failed   bool
}

func newSink(sc *screen, w io.Writer) *sink {
	s := &sink{screen: sc, w: w}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		s.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return s
}

// stream is the lines of one source.
type stream struct {
	sink     *sink
	label    []byte // of each line; may be empty
	at       cursor
	progress bool // the current line has carriage returns
}

// cursor is a position in a line.
type cursor uint8

const (
	lineStart cursor = iota
	afterReturn
	inLine
)

func (s *sink) write(label, text []byte) { (&stream{sink: s, label: label}).write(text) }

// lineWriter returns a function that writes lines, each after the label.
func (s *sink) lineWriter(label []byte) func(text []byte) {
	return (&stream{sink: s, label: label}).write
}

// write writes whole lines and progress displays, with the label, in one call of Write.
func (st *stream) write(text []byte) {
	if len(text) == 0 {
		return
	}
	s := st.sink
	s.screen.Lock()
	defer s.screen.Unlock()
	if s.failed {
		return // the reader is gone; the rank must not block on it
	}
	s.screen.endLocked(st)
	s.scratch = st.appendLines(s.scratch[:0], text)
	if st.progress {
		s.screen.open = st
	} else {
		s.screen.open = nil
	}
	s.putLocked(s.scratch)
}

func (s *sink) putLocked(text []byte) {
	if _, err := s.w.Write(text); err != nil {
		s.failed = true
	}
}

// endLocked completes the open line, unless it is the given stream's own. Output without
// labels stays unchanged, except on a terminal: it may be data.
func (sc *screen) endLocked(except *stream) {
	st := sc.open
	if st == nil || st == except {
		return
	}
	sc.open, st.at, st.progress = nil, lineStart, false
	if !st.sink.failed && (len(st.label) > 0 || st.sink.terminal) {
		st.sink.putLocked([]byte{'\n'})
	}
}

// finish completes the last line of labelled output. Output without labels stays
// unchanged.
func (s *sink) finish() {
	s.screen.Lock()
	defer s.screen.Unlock()
	if st := s.screen.open; st != nil && len(st.label) > 0 {
		s.screen.endLocked(nil)
	}
}

// appendLines appends text with a label at the start of each line and, in a progress
// display, after each carriage return.
func (st *stream) appendLines(dst, text []byte) []byte {
	for len(text) > 0 {
		end := bytes.IndexAny(text, "\r\n")
		if end < 0 {
			end = len(text)
		}
		newline := end < len(text) && text[end] == '\n'
		if end > 0 && st.at != inLine || newline && st.at == lineStart {
			dst = append(dst, st.label...)
			st.at = inLine
		}
		dst = append(dst, text[:end]...)
		if end < len(text) {
			dst = append(dst, text[end])
			if newline {
				st.at, st.progress = lineStart, false
			} else {
				st.at, st.progress = afterReturn, true
			}
			end++
		}
		text = text[end:]
	}
	if st.at != lineStart && !st.progress {
		// A piece of a very long line, or the last line of a stream.
		st.at = lineStart
		if len(st.label) > 0 {
			dst = append(dst, '\n')
		}
	}
	return dst
}

// rankLabel returns the label of a rank; all labels of a job have the same width.
func rankLabel(rank, ranks int) []byte {
	return fmt.Appendf(nil, "[%*d] ", len(strconv.Itoa(ranks-1)), rank)
}

// maxHeldLine limits the memory for a line: a longer one is forwarded in pieces.
const maxHeldLine = 1 << 20

// lineBuffer forwards the data of a stream: whole lines at a time, and a line with
// carriage returns as it comes, because it is a progress display. It has memory only for
// the beginning of a line.
type lineBuffer struct {
	write    func(lines []byte)
	held     []byte
	progress bool
}

func (l *lineBuffer) feed(fresh []byte) {
	whole := bytes.LastIndexByte(fresh, '\n') + 1
	l.progress = l.progress && whole == 0 || bytes.IndexByte(fresh[whole:], '\r') >= 0
	switch {
	case l.progress || len(l.held)+len(fresh) >= maxHeldLine:
		whole = len(fresh)
	case whole == 0:
		l.held = append(l.held, fresh...) // no line has ended
		return
	}
	lines := fresh[:whole]
	if len(l.held) > 0 {
		lines = append(l.held, lines...)
		l.held = nil
	}
	l.write(lines)
	if whole < len(fresh) {
		l.held = append(l.held, fresh[whole:]...)
	}
}

// end forwards the last line if it has no newline.
func (l *lineBuffer) end() {
	if len(l.held) > 0 {
		l.write(l.held)
		l.held = nil
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
		n, err = readNow(fd, buf)
		return true
	})
	if ctlErr != nil || err != nil || n <= 0 {
		return 0, io.EOF
	}
	return n, nil
}
