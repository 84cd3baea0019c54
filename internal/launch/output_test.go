package launch

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

func copied(label string, r io.Reader) string {
	var out bytes.Buffer
	copyLines((&sink{lock: new(sync.Mutex), w: &out}).labelled([]byte(label)), r)
	return out.String()
}

func TestCopyLines(t *testing.T) {
	binary := string([]byte{0, 255, 10, 13, 10, 27, 0})
	long := strings.Repeat("x", 3*lineBufferStart)
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
	copyLines((&sink{lock: new(sync.Mutex), w: w}).labelled(nil), iotest.OneByteReader(strings.NewReader("a\nb\nc\n")))
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
