package capture

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// dissected returns tshark's dissection of a capture; the test is skipped without tshark.
func dissected(t *testing.T, path string) *Dissection {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	v, err := Dissect(ctx, path)
	if errors.Is(err, ErrNoTshark) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// spoken returns the dissection of a conversation, its segments written in hexadecimal.
func spoken(t *testing.T, lines ...string) *Dissection {
	t.Helper()
	var segments []Segment
	for _, line := range lines {
		who, text, _ := strings.Cut(line, ":")
		data, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		from := Client
		if who == "server" {
			from = Server
		}
		segments = append(segments, Segment{from, data})
	}
	path := filepath.Join(t.TempDir(), "spoken.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteTCP(f, segments); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dissected(t, path)
}

const (
	request = "client: 4d504120494420526571204672616d65" // the key, "MPA ID Req Frame"
	reply   = "server: 4d504120494420526570204672616d65"
)

// The first messages between two soft-iWARP kernels in peer-to-peer mode: an empty Write.
func TestTsharkAcceptsKernelTraffic(t *testing.T) {
	v := spoken(t,
		request+"50 02 0004 8001c001",
		reply+"50 02 0004 80018001",
		"client: 000e c140 00000001 0000000000000000 ebd34c5f")
	if err := v.Err(); err != nil {
		t.Error(err)
	}
	if v.Requests != 1 || v.Replies != 1 || v.FPDUs != 1 || v.GoodCRC != 1 || v.Markers != 0 {
		t.Errorf("dissection %+v", v)
	}
	if got := v.Opcodes(); !reflect.DeepEqual(got, []int{0}) {
		t.Errorf("opcodes %v, want one Write", got)
	}
	if stag, ok := v.Headers[0].Number("iwarp_ddp.stag"); !ok || stag != 1 {
		t.Errorf("steering tag %d %v, want 1", stag, ok)
	}
	if _, ok := v.Headers[0].Number("iwarp_ddp.qn"); ok {
		t.Error("a tagged segment has a queue number")
	}
}

// The example of RFC 5044 figure 5: a marker, then a Send of 24 zeros.
func TestTsharkAcceptsMarkerExample(t *testing.T) {
	v := spoken(t,
		request+"c0 01 0000",
		reply+"c0 01 0000",
		"client: 00000000 002a 4143 00000000 00000000 00000001 00000000"+strings.Repeat("00", 24)+"52239983")
	if err := v.Err(); err != nil {
		t.Error(err)
	}
	if v.FPDUs != 1 || v.GoodCRC != 1 || v.Markers != 1 || !reflect.DeepEqual(v.Opcodes(), []int{3}) {
		t.Errorf("dissection %+v", v)
	}
}

// A check that never fails is worthless.
func TestTsharkFindsErrors(t *testing.T) {
	for _, c := range []struct {
		name, want string
		lines      []string
	}{
		{"a wrong checksum", "1 of 1 checksums are wrong", []string{request + "40 01 0000", reply + "40 01 0000", "client: 000e c140 00000001 0000000000000000 ebd34c5e"}},
		{"no startup", "0 MPA requests and 0 replies; frames [4] hold data that is no iWARP", []string{"client: 68656c6c6f"}},
		{"no reply", "1 MPA requests and 0 replies", []string{request + "40 01 0000"}},
		{"other data after the startup", "frames [6] hold data that is no iWARP", []string{request + "40 01 0000", reply + "40 01 0000", "client: 00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := spoken(t, c.lines...).Err()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestDissectRejectsOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing.pcap")
	_, err := Dissect(t.Context(), path)
	if errors.Is(err, ErrNoTshark) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names the file", err)
	}
}

// The output of tshark may change: output that cannot be parsed is an error.
func TestParsePDMLErrors(t *testing.T) {
	for _, c := range []struct{ name, want, answer string }{
		{"not XML", "EOF", "<pdml><packet>"},
		{"no number", "not a number", `<pdml><packet><field name="tcp.len" show="many"/></packet></pdml>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parsePDML(strings.NewReader(c.answer))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	v, err := parsePDML(strings.NewReader(`<pdml><packet><field name="num" show="7"/><proto name="_ws.malformed"/></packet><packet><proto name="iwarp_ddp_rdmap"/></packet></pdml>`))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(v.Malformed, []int{7}) || !reflect.DeepEqual(v.Opcodes(), []int{-1}) {
		t.Errorf("dissection %+v", v)
	}
}
