package pmi

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestParseMessage(t *testing.T) {
	for line, want := range map[string]message{
		"cmd=barrier_out": {"barrier_out", nil},
		"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n": {"response_to_init",
			[]field{{"pmi_version", "1"}, {"pmi_subversion", "1"}, {"rc", "0"}}},
		"cmd=get_result rc=0 msg=success value=(vector,(0,1,1))": {"get_result",
			[]field{{"rc", "0"}, {"msg", "success"}, {"value", "(vector,(0,1,1))"}}},
		"cmd=get_result rc=-1 msg=no such key value=unknown": {"get_result",
			[]field{{"rc", "-1"}, {"msg", "no such key"}, {"value", "unknown"}}},
		"cmd=put  key=a value=x=y=z \r\n": {"put", []field{{"key", "a"}, {"value", "x=y=z"}}},
		"mcmd=spawn":                      {"spawn", nil},
		"cmd=put value=":                  {"put", []field{{"value", ""}}},
	} {
		if got, err := parseMessage(line); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q must be read as %+v; got %+v, %v", line, want, got, err)
		}
	}
	for _, line := range []string{"", "\n", "cmd=", "cmd", "foo=bar", "rc=0 cmd=x", "cmd=x lonely", "cmd=x\ncmd=y", "cmd=x a\x00=b"} {
		if m, err := parseMessage(line); err == nil {
			t.Errorf("%q must be refused, was read as %+v", line, m)
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	for _, s := range []string{"cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=get_result rc=-1 msg=no such key value=x", "cmd= =a=", "mcmd=spawn", "cmd=x =y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		m, err := parseMessage(line)
		if err != nil {
			return
		}
		var fields []string
		for _, fl := range m.fields {
			fields = append(fields, fl.key, fl.value)
		}
		again, err := parseMessage(string(appendMessage(nil, m.cmd, fields...)))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%q was read as %+v, and that, written and read again, as %+v, %v", line, m, again, err)
		}
	})
}

func FuzzValueRoundTrip(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("a b=c\n"))
	f.Add(bytes.Repeat([]byte{0, 255}, 700))
	f.Fuzz(func(t *testing.T, val []byte) {
		pieces, err := encodeValue(val)
		if err != nil {
			if len(val) <= maxPieces*pieceBytes {
				t.Fatal(err)
			}
			return
		}
		got, n, err := decodeFirst(pieces[0])
		if err != nil || n != len(pieces) {
			t.Fatalf("the first of %d pieces gives the number %d, %v", len(pieces), n, err)
		}
		for _, p := range pieces[1:] {
			part, err := valueCode.DecodeString(p)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, part...)
		}
		if !bytes.Equal(got, val) {
			t.Fatalf("%q was decoded as %q", val, got)
		}
		for _, p := range pieces {
			if len(p) > 1000 || strings.ContainsAny(p, " =;\n") {
				t.Fatalf("a piece is too long or contains separators: %q", p)
			}
		}
	})
}

func FuzzDecodeFirst(f *testing.F) {
	f.Add("1:YQ")
	f.Add("0:")
	f.Add("9999999999:x")
	f.Fuzz(func(t *testing.T, s string) {
		if _, n, err := decodeFirst(s); err == nil && (n < 1 || n > maxPieces) {
			t.Fatalf("%q gives %d pieces", s, n)
		}
	})
}

func TestLongestKey(t *testing.T) {
	key := pieceKey(strings.Repeat("k", MaxKey), maxMapped, maxPieces)
	if len(key) > serverKeyMax {
		t.Errorf("the longest key has %d characters, more than the %d that servers accept", len(key), serverKeyMax)
	}
}

func TestLineReader(t *testing.T) {
	text := "one\n\ntwo " + strings.Repeat("x", 5000) + "\nthree\nrest"
	for name, r := range map[string]io.Reader{
		"all at once":  strings.NewReader(text),
		"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		"with pauses":  iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(text))),
	} {
		l := lineReader{r: r}
		var got []string
		var err error
		for {
			var line []byte
			if line, err = l.next(); err == iotest.ErrTimeout {
				continue
			} else if err != nil {
				break
			}
			got = append(got, string(line))
		}
		if want := strings.Split(strings.TrimSuffix(text, "\nrest"), "\n"); err != io.EOF || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read %d lines, want %d, then EOF; got %v", name, len(got), len(want), err)
		}
	}
	l := lineReader{r: strings.NewReader(strings.Repeat("x", 3*maxLine))}
	if _, err := l.next(); err == nil || err == io.EOF {
		t.Errorf("an endless line must be refused: %v", err)
	}
}
