package core

import (
	"bytes"
	"testing"
)

// testTypes returns the predefined datatypes.
func testTypes(t *testing.T) func(h handle) *datatype {
	t.Helper()
	p := &Process{types: newTable[datatype](kindDatatype)}
	p.openTypes()
	return func(h handle) *datatype {
		d, err := p.datatype(h)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

func TestExternal32(t *testing.T) {
	get := testTypes(t)
	tests := []struct {
		name             string
		h                handle
		native, external []byte
	}{
		{"int", typeInt, []byte{4, 3, 2, 1}, []byte{1, 2, 3, 4}},
		{"long", 0x4c000807, []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, []byte{0xff, 0xff, 0xff, 0xfe}},
		{"unsigned long", 0x4c000808, []byte{1, 0, 0, 0x80, 0, 0, 0, 0}, []byte{0x80, 0, 0, 1}},
		{"wchar_t", 0x4c00040e, []byte{0x61, 0, 0, 0}, []byte{0, 0x61}},
		{"complex", 0x4c000840, []byte{1, 2, 3, 4, 5, 6, 7, 8}, []byte{4, 3, 2, 1, 8, 7, 6, 5}},
		{"2int", 0x4c000816, []byte{1, 0, 0, 0, 2, 0, 0, 0}, []byte{0, 0, 0, 1, 0, 0, 0, 2}},
		{"short and int", 0x8c000003 - 1<<32, []byte{1, 2, 1, 2, 3, 4}, []byte{2, 1, 4, 3, 2, 1}},
		{"long double 1", 0x4c00100c, []byte{0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f, 0, 0, 0, 0, 0, 0},
			[]byte{0x3f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"long double -1.5", 0x4c00100c, []byte{0, 0, 0, 0, 0, 0, 0, 0xc0, 0xff, 0xbf, 0, 0, 0, 0, 0, 0},
			[]byte{0xbf, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		{"long double 0", 0x4c00100c, make([]byte, 16), make([]byte, 16)},
	}
	for _, tt := range tests {
		e := get(tt.h).elements
		if e.size != int64(len(tt.native)) || e.external != int64(len(tt.external)) {
			t.Errorf("%s: %d bytes become %d; want %d and %d", tt.name, e.size, e.external, len(tt.native), len(tt.external))
			continue
		}
		external, native := make([]byte, len(tt.external)), make([]byte, len(tt.native))
		e.convert(1, tt.native, external, true)
		e.convert(1, native, tt.external, false)
		if !bytes.Equal(external, tt.external) || !bytes.Equal(native, tt.native) {
			t.Errorf("%s: encoded %x, want %x; decoded %x, want %x", tt.name, external, tt.external, native, tt.native)
		}
	}
}

func TestSignature(t *testing.T) {
	get := testTypes(t)
	short, integer, double := get(0x4c000203).elements, get(typeInt).elements, get(0x4c00080b).elements
	s := sequence([]part{{2, short}, {0, double}, {1, sequence([]part{{1, integer}, {3, double}})}}).times(2) // 64 bytes
	if s.size != 64 || s.number != 12 {
		t.Fatalf("%d bytes and %d elements; want 64 and 12", s.size, s.number)
	}
	for _, tt := range []struct{ bytes, number, rest int64 }{
		{0, 0, 0}, {1, 0, 1}, {2, 1, 0}, {4, 2, 0}, {8, 3, 0}, {10, 3, 2}, {16, 4, 0}, {32, 6, 0}, {36, 8, 0}, {64, 12, 0}, {130, 25, 0},
	} {
		number, rest := s.elementsIn(tt.bytes)
		if number != tt.number || rest != tt.rest {
			t.Errorf("in(%d) = %d, %d; want %d, %d", tt.bytes, number, rest, tt.number, tt.rest)
		}
		if tt.rest == 0 && s.bytes(tt.number) != tt.bytes {
			t.Errorf("bytes(%d) = %d, want %d", tt.number, s.bytes(tt.number), tt.bytes)
		}
	}
	if twice := integer.times(3).times(2); len(twice.parts) != 1 || twice.parts[0].count != 6 {
		t.Errorf("3 times 2 elements have the parts %v", twice.parts)
	}
}

func TestElement(t *testing.T) {
	get := testTypes(t)
	pair, integer, short := get(0x8c000000-1<<32), get(typeInt), get(0x4c000203)
	made := func(types ...*datatype) *datatype {
		return &datatype{layout: types[0].layout, recipe: recipe{types: types}}
	}
	for _, tt := range []struct{ in, want *datatype }{
		{integer, integer}, {pair, pair}, {made(pair), pair}, {made(made(integer), get(typeLB), integer), integer}, {made(integer, short), nil},
	} {
		if got := tt.in.element(); got != tt.want {
			t.Errorf("element of %v = %v, want %v", tt.in.recipe, got, tt.want)
		}
	}
}
