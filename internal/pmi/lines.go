package pmi

import (
	"bytes"
	"fmt"
	"io"
)

// lineReader splits a stream into lines. Unlike bufio it keeps a partial line when a read
// times out, so that the caller can continue reading.
type lineReader struct {
	r     io.Reader
	buf   []byte
	start int // start of the unread part
}

// next returns a line without its newline, valid until the next call.
func (l *lineReader) next() ([]byte, error) {
	seen := l.start
	for {
		if i := bytes.IndexByte(l.buf[seen:], '\n'); i >= 0 {
			line := l.buf[l.start : seen+i]
			l.start = seen + i + 1
			return line, nil
		}
		if len(l.buf)-l.start > maxLine {
			return nil, fmt.Errorf("a line is longer than %d bytes", maxLine)
		}
		if l.start > 0 {
			l.buf = l.buf[:copy(l.buf, l.buf[l.start:])]
			l.start = 0
		}
		seen = len(l.buf)
		if cap(l.buf)-len(l.buf) < 1024 {
			l.buf = append(make([]byte, 0, max(2048, 2*cap(l.buf))), l.buf...)
		}
		n, err := l.r.Read(l.buf[len(l.buf):cap(l.buf)])
		l.buf = l.buf[:len(l.buf)+n]
		if n == 0 && err != nil {
			return nil, err
		}
	}
}
