package ddp

import (
	"encoding/hex"
	"testing"
)

func TestHeaderBytes(t *testing.T) {
	for _, c := range []struct {
		header Header
		bytes  string
	}{
		// The ready-to-receive message of soft-iWARP.
		{Header{Op: Write, Last: true, Tag: 1}, "c140" + "00000001" + "0000000000000000"},
		{Header{Op: Write, Tag: 0x01020304, TO: 0x1122334455667788}, "8140" + "01020304" + "1122334455667788"},
		{Header{Op: ReadRequestOp, Last: true, QN: 1, MSN: 9}, "4141" + "00000000" + "00000001" + "00000009" + "00000000"},
		{Header{Op: ReadResponse, Last: true, Tag: 5, TO: 6}, "c142" + "00000005" + "0000000000000006"},
		{Header{Op: Send, MSN: 1, MO: 0x100}, "0143" + "00000000" + "00000000" + "00000001" + "00000100"},
		{Header{Op: Send, Last: true, MSN: 1}, "4143" + "00000000" + "00000000" + "00000001" + "00000000"},
		{Header{Op: SendInvalidate, Last: true, Tag: 0xa1a2a3a4, MSN: 2}, "4144" + "a1a2a3a4" + "00000000" + "00000002" + "00000000"},
		{Header{Op: SendSolicited, Last: true, MSN: 3}, "4145" + "00000000" + "00000000" + "00000003" + "00000000"},
		{Header{Op: SendSolicitedInvalidate, Last: true, Tag: 4, MSN: 4}, "4146" + "00000004" + "00000000" + "00000004" + "00000000"},
		{Header{Op: TerminateOp, Last: true, QN: 2, MSN: 1}, "4147" + "00000000" + "00000002" + "00000001" + "00000000"},
		{Header{Op: Immediate, Last: true, MSN: 5}, "4148" + "00000000" + "00000000" + "00000005" + "00000000"},
		{Header{Op: ImmediateSolicited, Last: true, MSN: 6}, "4149" + "00000000" + "00000000" + "00000006" + "00000000"},
		{Header{Op: AtomicRequestOp, Last: true, QN: 1, MSN: 7}, "414a" + "00000000" + "00000001" + "00000007" + "00000000"},
		{Header{Op: AtomicResponseOp, Last: true, QN: 3, MSN: 8}, "414b" + "00000000" + "00000003" + "00000008" + "00000000"},
	} {
		t.Run(c.header.Op.String(), func(t *testing.T) {
			b := make([]byte, UntaggedLen)
			n := c.header.Put(b)
			if got := hex.EncodeToString(b[:n]); got != c.bytes || n != c.header.Len() || n != HeaderLen(b[0]) {
				t.Fatalf("Put: %s (%d bytes, Len %d), want %s", got, n, c.header.Len(), c.bytes)
			}
			payload := kinds[c.header.Op].payload
			if payload < 0 {
				payload = 4
			}
			var h Header
			if m, f := h.Decode(b[:n], n+payload); m != n || f != NoFault || h != c.header {
				t.Fatalf("Decode: %+v, %d, %v; want %+v, %d", h, m, f, c.header, n)
			}
		})
	}
}

func TestHeaderFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		bytes   string
		payload int
		want    Fault
	}{
		{"nothing", "", 0, FaultDDP},
		{"tagged header truncated", "c140" + "00000001" + "00000000000000", 0, FaultDDP},
		{"untagged header truncated", "4143" + "0000000000000000000000010000", 0, FaultDDP},
		{"segment ends within its header", "4143" + "00000000000000000000000100000000", -1, FaultDDP},
		{"tagged, version 0", "c040" + "000000010000000000000000", 0, FaultTaggedDDPVersion},
		{"untagged, version 2", "4243" + "00000000000000000000000100000000", 0, FaultUntaggedDDPVersion},
		{"RDMAP version 0", "4103" + "00000000000000000000000100000000", 0, FaultVersion},
		{"RDMAP version 3", "c1c0" + "000000010000000000000000", 0, FaultVersion},
		{"opcode 12", "414c" + "00000000000000000000000100000000", 0, FaultOpcode},
		{"opcode 15", "414f" + "00000000000000000000000100000000", 0, FaultOpcode},
		{"a Write without a tag", "4140" + "00000000000000000000000100000000", 0, FaultOpcode},
		{"a Send with a tag", "c143" + "000000010000000000000000", 0, FaultOpcode},
		{"a Send on the queue of requests", "4143" + "00000000000000010000000100000000", 0, FaultOpcode},
		{"a read request on the queue of Sends", "4141" + "00000000000000000000000100000000", 28, FaultOpcode},
		{"queue 4", "4143" + "00000000000000040000000100000000", 0, FaultQueue},
		{"a message of 2^32 bytes", "4143" + "000000000000000000000001ffffffff", 1, FaultTooLong},
		{"a message of 2^32-1 bytes", "4143" + "000000000000000000000001fffffffe", 1, NoFault},
		{"a read request too short", "4141" + "00000000000000010000000100000000", 27, FaultUnspecified},
		{"a read request too long", "4141" + "00000000000000010000000100000000", 53, FaultTooLong},
		{"a read request in pieces", "0141" + "00000000000000010000000100000000", 28, FaultUnspecified},
		{"a read request that begins in the middle", "4141" + "00000000000000010000000100000004", 28, FaultUnspecified},
		{"immediate data of 7 bytes", "4148" + "00000000000000000000000100000000", 7, FaultUnspecified},
		{"reserved bits are ignored", "7d73" + "00000000000000000000000100000000", 0, NoFault},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := hex.DecodeString(c.bytes)
			if err != nil {
				t.Fatal(err)
			}
			var h Header
			_, f := h.Decode(b, len(b)+c.payload)
			wantFault(t, "Decode", f, c.want)
		})
	}
}

func TestOpcodeNames(t *testing.T) {
	for o := range opcodes {
		if o.String() == "" {
			t.Errorf("opcode %d has no name", o)
		}
		if o.Control() && kinds[o].payload > ControlMax {
			t.Errorf("%v: payload of %d bytes does not fit ControlMax", o, kinds[o].payload)
		}
	}
	if TerminateMax > ControlMax {
		t.Errorf("a Terminate of %d bytes does not fit ControlMax", TerminateMax)
	}
	if o := opcodes; o.String() != "unknown operation" || o.Tagged() || o.Control() {
		t.Errorf("opcode %d is treated as a known one", o)
	}
	for o, want := range map[Opcode][2]bool{
		Send: {false, false}, SendInvalidate: {true, false}, SendSolicited: {false, true},
		SendSolicitedInvalidate: {true, true}, Immediate: {false, false}, ImmediateSolicited: {false, true},
	} {
		if got := [2]bool{o.Invalidates(), o.Solicits()}; got != want {
			t.Errorf("%v: invalidates, solicits = %v, want %v", o, got, want)
		}
	}
}

func TestMessageSegments(t *testing.T) {
	for _, c := range []struct {
		name    string
		message Message
		room    int
		want    []Header
	}{
		{"empty", Message{Header{Op: Send, MSN: 3}, 0}, 10, []Header{{Op: Send, MSN: 3, Last: true}}},
		{"just fits", Message{Header{Op: Send, MSN: 3}, 10}, 10, []Header{{Op: Send, MSN: 3, Last: true}}},
		{"untagged", Message{Header{Op: Send, MSN: 3}, 21}, 10,
			[]Header{{Op: Send, MSN: 3}, {Op: Send, MSN: 3, MO: 10}, {Op: Send, MSN: 3, MO: 20, Last: true}}},
		{"tagged", Message{Header{Op: Write, Tag: 9, TO: 100}, 20}, 10,
			[]Header{{Op: Write, Tag: 9, TO: 100}, {Op: Write, Tag: 9, TO: 110, Last: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			off := uint32(0)
			for i, want := range c.want {
				h, n := c.message.Segment(off, c.room)
				if h != want {
					t.Fatalf("segment %d: %+v, want %+v", i, h, want)
				}
				off += uint32(n)
			}
			if off != c.message.Len {
				t.Fatalf("the segments have %d bytes of %d", off, c.message.Len)
			}
		})
	}
}
