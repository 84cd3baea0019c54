package ddp

import (
	"encoding/hex"
	"strings"
	"testing"
)

func TestTerminateHeaders(t *testing.T) {
	request := encode(Header{Op: ReadRequestOp, Last: true, QN: 1, MSN: 4}, pattern(ReadRequestLen))
	write := encode(Header{Op: Write, Last: true, Tag: 0xabc, TO: 16}, pattern(40))
	atomic := encode(Header{Op: AtomicRequestOp, Last: true, QN: 1, MSN: 5}, pattern(AtomicRequestLen))
	ddp := func(b []byte) string { return hex.EncodeToString(b[:HeaderLen(b[0])]) }
	for _, c := range []struct {
		name  string
		fault Fault
		raw   []byte
		want  string
	}{
		{"read of a bad tag", FaultSourceTag, request, "0100e000" + "002e" + hex.EncodeToString(request)},
		{"write to a bad tag", FaultTag, write, "1100c000" + "0036" + ddp(write)},
		{"write outside", FaultTagBounds, write, "1101c000" + "0036" + ddp(write)},
		{"unaligned atomic", FaultAlignment, atomic, "0207c000" + "0046" + ddp(atomic)},
		{"atomic on a bad tag", FaultSourceTag, atomic, "0100c000" + "0046" + ddp(atomic)},
		{"unknown operation", FaultOpcode, request, "0206c000" + "002e" + ddp(request)},
		{"no receive", FaultNoBuffer, write, "1202c000" + "0036" + ddp(write)},
		{"CRC", FaultMPACRC, write, "20020000"},
		{"local", FaultLocal, write, "00000000"},
		{"truncated header", FaultTag, write[:13], "11000000"},
		{"nothing to show", FaultTag, nil, "11000000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			made := TerminateFor(c.fault, c.raw, len(c.raw))
			b := make([]byte, TerminateMax)
			n := made.Put(b)
			if got := hex.EncodeToString(b[:n]); got != c.want || n != made.Len() {
				t.Fatalf("%s (Len %d), want %s", got, made.Len(), c.want)
			}
			var read Terminate
			if !read.Decode(b[:n]) || read.Fault != c.fault || string(read.DDP()) != string(made.DDP()) {
				t.Fatalf("decodes to %+v", read)
			}
			_, shown := read.Request()
			if _, want := made.Request(); shown != want {
				t.Fatalf("the read is shown: %v, want %v", shown, want)
			}
		})
	}
}

// TestTerminateOfSoftIWARP decodes what Linux sends, whose bit-fields are mirrored.
func TestTerminateOfSoftIWARP(t *testing.T) {
	for _, c := range []struct {
		bytes string
		want  Fault
		shown int
	}{
		{"02020000", FaultMPACRC, 0}, // as seen on the wire
		{"20020000", FaultMPACRC, 0},
		{"11000300" + "000e" + "c140" + "000000010000000000000000", FaultTag, TaggedLen},
		{"1000c000" + "0000" + "c140" + "000000010000000000000000", FaultDDP, TaggedLen},
		{"10000700" + "002e" + "4141" + "00000000000000010000000100000000" + strings.Repeat("00", 28), FaultSourceTag, UntaggedLen},
		{"1100c000" + "000e" + "c140" + "0000", FaultTag, 0},
		{"0205c000", FaultVersion, 0}, // announces a header that does not follow
	} {
		b, err := hex.DecodeString(c.bytes)
		if err != nil {
			t.Fatal(err)
		}
		var got Terminate
		if !got.Decode(b) || got.Fault != c.want || len(got.DDP()) != c.shown {
			t.Errorf("%s: %v, %d bytes shown; want %v, %d", c.bytes, got.Fault, len(got.DDP()), c.want, c.shown)
		}
	}
	var got Terminate
	if got.Decode([]byte{0x20, 2, 0}) {
		t.Error("3 bytes are decoded as a Terminate")
	}
}

func TestFaultTexts(t *testing.T) {
	for f, text := range faultTexts {
		if again := FaultOf(f.Layer(), f.Type(), f.Code()); again != f {
			t.Errorf("%v has other numbers than it was created with: %v", f, again)
		}
		if err := f.Err(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: error %v", f, err)
		}
	}
	if NoFault.Err() != nil || NoFault.String() != "no fault" {
		t.Errorf("no fault is an error: %v", NoFault.Err())
	}
	if got := FaultOf(2, 0, 0x77).String(); !strings.Contains(got, "layer 2, type 0, code 119") {
		t.Errorf("an unknown fault reads %q", got)
	}
	for f, want := range map[Fault]bool{
		FaultTag: true, FaultTagBounds: true, FaultSourceAccess: true, FaultInvalidate: true,
		NoFault: false, FaultTaggedDDPVersion: false, FaultNoBuffer: false, FaultMPACRC: false, FaultLocal: false,
	} {
		if f.Access() != want {
			t.Errorf("%v: Access %v", f, f.Access())
		}
	}
}
