package netprobe

import (
	"encoding/binary"
	"testing"
)

// attr returns an attribute, padded to four bytes.
func attr(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&3)...)
}

// qdisc returns a message about the filter of an interface.
func qdisc(index, parent uint32, kind string, options []byte) []byte {
	b := make([]byte, qdiscHeader)
	binary.NativeEndian.PutUint32(b[4:], index)
	binary.NativeEndian.PutUint32(b[12:], parent)
	b = append(b, attr(attrKind, append([]byte(kind), 0))...)
	return append(b, attr(attrOptions, options)...)
}

func TestLimitOf(t *testing.T) {
	parms := make([]byte, 36)
	binary.NativeEndian.PutUint32(parms[rateOffset:], 125e6) // bytes per second
	good := qdisc(7, qdiscRoot, "tbf", attr(attrTBFParms, parms))
	if index, rate := limitOf(good); index != 7 || rate != 1000 {
		t.Errorf("interface %d is limited to %d Mbit/s", index, rate)
	}
	for name, message := range map[string][]byte{
		"another filter":    qdisc(7, qdiscRoot, "fq_codel", attr(attrTBFParms, parms)),
		"a part of traffic": qdisc(7, 0x10000, "tbf", attr(attrTBFParms, parms)),
		"no parameters":     qdisc(7, qdiscRoot, "tbf", nil),
		"nothing":           nil,
	} {
		if _, rate := limitOf(message); rate != 0 {
			t.Errorf("%s: limited to %d Mbit/s", name, rate)
		}
	}
	for n := range good { // a message cut off anywhere
		limitOf(good[:n])
	}
}

func TestRate(t *testing.T) {
	for _, c := range []struct {
		i    Interface
		want int
	}{
		{Interface{Physical: true, Speed: 25000}, 25000},
		{Interface{Physical: true, Speed: 25000, Limit: 1000}, 1000},
		{Interface{Physical: true, Limit: 1000}, 1000},
		{Interface{Speed: 10000}, 0}, // a veth
		{Interface{Speed: 10000, Limit: 100}, 100},
	} {
		if got := c.i.Rate(); got != c.want {
			t.Errorf("%+v: %d Mbit/s, want %d", c.i, got, c.want)
		}
	}
}
