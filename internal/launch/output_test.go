//go:build !windows

package launch

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// copyLines forwards the data of r until it ends.
func copyLines(write func([]byte), r io.Reader) {
	l := lineBuffer{write: write}
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		l.feed(buf[:n])
		if err != nil {
			l.end()
			return
		}
	}
}

func copied(label string, r io.Reader) string {
	var out bytes.Buffer
	copyLines((&sink{screen: new(screen), w: &out}).lineWriter([]byte(label)), r)
	return out.String()
}

func TestCopyLines(t *testing.T) {
	binary := string([]byte{0, 255, 10, 13, 10, 27, 0})
	long := strings.Repeat("x", 3*4096)
	for _, c := range []struct{ what, label, in, want string }{
		{"nothing", "[0] ", "", ""},
		{"lines", "[0] ", "a\nb\n", "[0] a\n[0] b\n"},
		{"an empty line", "[0] ", "\n\na\n", "[0] \n[0] \n[0] a\n"},
		{"no newline at the end", "[0] ", "a\nb", "[0] a\n[0] b\n"},
		{"no newline, no label", "", "a\nb", "a\nb"},
		{"bytes of all kinds", "", binary, binary},
		{"a long line", "[0] ", long + "\nb\n", "[0] " + long + "\n[0] b\n"},
	} {
		for name, r := range map[string]io.Reader{
			"at once":      strings.NewReader(c.in),
			"byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
			"with the end": iotest.DataErrReader(strings.NewReader(c.in)),
		} {
			if got := copied(c.label, r); got != c.want {
				t.Errorf("%s, %s: got %.60q, want %.60q", c.what, name, got, c.want)
			}
		}
	}
}

// A progress display rewrites its line after a carriage return.
func TestProgressDisplay(t *testing.T) {
	for _, c := range []struct{ what, label, in, want string }{
		{"a return at the end", "[0] ", "1%\r2%\rdone\n", "[0] 1%\r[0] 2%\r[0] done\n"},
		{"a return at the start", "[0] ", "\r1%\r2%\n", "\r[0] 1%\r[0] 2%\n"},
		{"lines of DOS", "[0] ", "a\r\nb\r\n", "[0] a\r\n[0] b\r\n"},
		{"no label", "", "1%\r2%\rdone", "1%\r2%\rdone"},
		{"lines before and after", "[0] ", "a\n1%\r2%\nb\n", "[0] a\n[0] 1%\r[0] 2%\n[0] b\n"},
	} {
		for name, r := range map[string]io.Reader{
			"at once":      strings.NewReader(c.in),
			"byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
		} {
			if got := copied(c.label, r); got != c.want {
				t.Errorf("%s, %s: got %q, want %q", c.what, name, got, c.want)
			}
		}
	}
}

func TestProgressIsForwardedAtOnce(t *testing.T) {
	r, w := io.Pipe()
	pieces := make(chan string)
	go copyLines(func(text []byte) { pieces <- string(text) }, r)
	for _, piece := range []string{"\r10", "%", "\r20%", " of all\n"} {
		go w.Write([]byte(piece))
		if got := <-pieces; got != piece {
			t.Errorf("%q must be forwarded before the line ends, got %q", piece, got)
		}
	}
	go func() {
		w.Write([]byte("no "))
		w.Write([]byte("return"))
		w.Close()
	}()
	if got := <-pieces; got != "no return" {
		t.Errorf("the next line is held until it ends, got %q", got)
	}
}

// Lines of other ranks do not continue the line of a progress display.
func TestProgressOfSeveralRanks(t *testing.T) {
	var out, errOut bytes.Buffer
	both := new(screen)
	stdout, stderr := &sink{screen: both, w: &out}, &sink{screen: both, w: &errOut}
	zero, one := stdout.lineWriter([]byte("[0] ")), stdout.lineWriter([]byte("[1] "))
	zero([]byte("1%\r"))
	zero([]byte("2%\r"))
	one([]byte("hello\n"))
	zero([]byte("3%\r"))
	stderr.write([]byte("muster: "), []byte("a notice\n"))
	one([]byte("1%"))
	zero([]byte("\r4%"))
	stdout.finish()
	if want := "[0] 1%\r[0] 2%\r\n[1] hello\n[0] 3%\r\n[1] 1%\n\r[0] 4%\n"; out.String() != want {
		t.Errorf("the output is %q, want %q", out.String(), want)
	}
	if want := "muster: a notice\n"; errOut.String() != want {
		t.Errorf("the other stream has %q, want %q", errOut.String(), want)
	}
}

// Without labels, output with carriage returns may be data: nothing is inserted, whoever
// else writes.
func TestReturnsWithoutLabels(t *testing.T) {
	var out, errOut bytes.Buffer
	both := new(screen)
	stdout, stderr := newSink(both, &out), newSink(both, &errOut)
	zero, one := stdout.lineWriter(nil), stdout.lineWriter(nil)
	zero([]byte("\x00\r\x01"))
	stderr.lineWriter(nil)([]byte("warning\n"))
	stderr.write([]byte("muster: "), []byte("a notice\n"))
	zero([]byte("\r"))
	one([]byte("\x02\n"))
	zero([]byte("\x03"))
	stdout.finish()
	if want := "\x00\r\x01\r\x02\n\x03"; out.String() != want {
		t.Errorf("the output is %q, want %q", out.String(), want)
	}
	if want := "warning\nmuster: a notice\n"; errOut.String() != want {
		t.Errorf("the other stream has %q, want %q", errOut.String(), want)
	}
}

func TestEndlessLine(t *testing.T) {
	in := strings.Repeat("y", 3*maxHeldLine+5)
	if got := copied("", strings.NewReader(in)); got != in {
		t.Errorf("without a label every byte must pass as it is: %d of %d came", len(got), len(in))
	}
	got := copied("[1] ", strings.NewReader(in))
	if n := strings.Count(got, "[1] "); n < 2 || strings.Count(got, "y") != len(in) {
		t.Errorf("with a label the line must arrive in several labelled pieces without loss: %d pieces, %d bytes", n, strings.Count(got, "y"))
	}
}

type brokenWriter struct{ calls int }

func (w *brokenWriter) Write([]byte) (int, error) {
	w.calls++
	return 0, errors.New("gone")
}

func TestBrokenOutput(t *testing.T) {
	w := new(brokenWriter)
	copyLines((&sink{screen: new(screen), w: w}).lineWriter(nil), iotest.OneByteReader(strings.NewReader("a\nb\nc\n")))
	if w.calls != 1 {
		t.Errorf("a broken output must be tried once, not %d times", w.calls)
	}
}

func TestRankLabel(t *testing.T) {
	for _, c := range []struct {
		rank, ranks int
		want        string
	}{{0, 2, "[0] "}, {3, 10, "[3] "}, {3, 11, "[ 3] "}, {63, 64, "[63] "}, {7, 1000, "[  7] "}} {
		if got := string(rankLabel(c.rank, c.ranks)); got != c.want {
			t.Errorf("label of %d among %d: got %q, want %q", c.rank, c.ranks, got, c.want)
		}
	}
}
