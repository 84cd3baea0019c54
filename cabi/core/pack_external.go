package core

// The representation external32 (MPI-4.1 sections 5.3 and 14.5.2): big-endian, with IEEE
// floating point and fixed sizes, which differ from those of this machine for long, wchar_t
// and long double.

import (
	"encoding/binary"
	"slices"
)

// externalForm is how an element is converted: as units of native bytes that become
// external bytes.
type externalForm struct {
	units    int64
	native   int64
	external int64
	method   method
}

type method uint8

const (
	swap     method = iota // the bytes in reverse order
	signed                 // an integer that changes its size
	unsigned               // the same without a sign
	extended               // long double: the 80-bit format of x86 to IEEE binary128
)

// unusualForms has the types that do not consist of one unit whose bytes are reversed.
var unusualForms = map[handle]externalForm{
	0x4c00040e: {1, 4, 2, unsigned},   // MPI_WCHAR
	0x4c000807: {1, 8, 4, signed},     // MPI_LONG
	0x4c000808: {1, 8, 4, unsigned},   // MPI_UNSIGNED_LONG
	0x4c00100c: {1, 16, 16, extended}, // MPI_LONG_DOUBLE
	0x4c00081e: {2, 4, 4, swap},       // MPI_COMPLEX
	0x4c001022: {2, 8, 8, swap},       // MPI_DOUBLE_COMPLEX
	0x4c000828: {2, 4, 4, swap},       // MPI_COMPLEX8
	0x4c00102a: {2, 8, 8, swap},       // MPI_COMPLEX16
	0x4c00202c: {2, 16, 16, swap},     // MPI_COMPLEX32
	0x4c000840: {2, 4, 4, swap},       // MPI_C_FLOAT_COMPLEX
	0x4c001041: {2, 8, 8, swap},       // MPI_C_DOUBLE_COMPLEX
	0x4c002042: {2, 16, 16, extended}, // MPI_C_LONG_DOUBLE_COMPLEX
	0x4c000834: {2, 4, 4, swap},       // MPI_CXX_FLOAT_COMPLEX
	0x4c001035: {2, 8, 8, swap},       // MPI_CXX_DOUBLE_COMPLEX
	0x4c002036: {2, 16, 16, extended}, // MPI_CXX_LONG_DOUBLE_COMPLEX
}

func formOf(t *datatype) externalForm {
	if f, ok := unusualForms[t.handle]; ok {
		return f
	}
	return externalForm{1, t.layout.Size(), t.layout.Size(), swap}
}

// convert converts the stream of count repetitions of a signature from native to external
// form or back, and returns what remains of both.
func (s *signature) convert(count int64, native, external []byte, out bool) (nativeRest, externalRest []byte) {
	if s.leaf != nil {
		f := s.form
		for range count * f.units {
			n, e := native[:f.native], external[:f.external]
			if out {
				f.encode(e, n)
			} else {
				f.decode(n, e)
			}
			native, external = native[f.native:], external[f.external:]
		}
		return native, external
	}
	for range count {
		for _, p := range s.parts {
			native, external = p.of.convert(p.count, native, external, out)
		}
	}
	return native, external
}

// encode stores a unit in external form.
func (f externalForm) encode(external, native []byte) {
	switch f.method {
	case swap:
		copy(external, native)
		slices.Reverse(external)
	case signed, unsigned: // a value that does not fit loses its higher bytes
		copy(external, native[:f.external])
		slices.Reverse(external)
	case extended:
		encodeExtended(external, native)
	}
}

// decode stores a unit in native form.
func (f externalForm) decode(native, external []byte) {
	switch f.method {
	case swap:
		copy(native, external)
		slices.Reverse(native)
	case signed, unsigned:
		fill := byte(0)
		if f.method == signed && external[0]&0x80 != 0 {
			fill = 0xff
		}
		for i := range native {
			native[i] = fill
		}
		for i, b := range external {
			native[len(external)-1-i] = b
		}
	case extended:
		decodeExtended(native, external)
	}
}

// Both formats have a sign and 15 bits of exponent. The 80-bit one has 64 bits of fraction
// with the leading one; binary128 has 112 without it, and 63 of them are used.
func encodeExtended(external, native []byte) {
	mantissa, head := binary.LittleEndian.Uint64(native), binary.LittleEndian.Uint16(native[8:])
	clear(external)
	binary.BigEndian.PutUint16(external, head)
	binary.BigEndian.PutUint64(external[2:], mantissa<<1) // without the leading one
}

// decodeExtended drops the 49 bits of the fraction that the 80-bit format does not have.
func decodeExtended(native, external []byte) {
	head, mantissa := binary.BigEndian.Uint16(external), binary.BigEndian.Uint64(external[2:])>>1
	if head&0x7fff != 0 { // zero and denormals have no leading one
		mantissa |= 1 << 63
	}
	clear(native)
	binary.LittleEndian.PutUint64(native, mantissa)
	binary.LittleEndian.PutUint16(native[8:], head)
}

const errDatarep class = 43 // MPI_ERR_UNSUPPORTED_DATAREP

// representation fails unless the data representation in argument i is known.
func (a *args) representation(i int) {
	if a.results(i); a.err == nil && a.text(i) != "external32" {
		a.fail(errorf(errDatarep, "%q is not a data representation for packing; external32 is", a.text(i)))
	}
}

func (p *Process) packExternal(a *args) error {
	a.representation(0)
	n, t := a.count(2), a.datatype(3)
	if a.err != nil {
		return a.err
	}
	native, err := t.outgoing(a.addr(1), n)
	if err != nil {
		return err
	}
	w := a.window(4, 5, 6, int64(n)*t.elements.external, true)
	if a.err != nil {
		return a.err
	}
	t.elements.convert(int64(n), native, w.bytes, true)
	a.setAint(6, w.pos)
	return nil
}

func (p *Process) unpackExternal(a *args) error {
	a.representation(0)
	n, t := a.count(5), a.datatype(6)
	if a.err != nil {
		return a.err
	}
	native, land, err := t.incoming(a.addr(4), n)
	if err != nil {
		return err
	}
	w := a.window(1, 2, 3, int64(n)*t.elements.external, true)
	if a.err != nil {
		return a.err
	}
	t.elements.convert(int64(n), native, w.bytes, false)
	land.unpack(len(native))
	a.setAint(3, w.pos)
	return nil
}

func (p *Process) packExternalSize(a *args) error {
	a.representation(0)
	n, t := a.count(1), a.datatype(2)
	if a.results(3); a.err != nil {
		return a.err
	}
	a.setAint(3, int(int64(n)*t.elements.external))
	return nil
}
