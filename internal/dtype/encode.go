package dtype

import (
	"encoding/binary"
	"errors"
	"math"
)

// Layouts as bytes, for ranks that compute where the data of others is. The form has what Pack and
// Segments need: the shape and the extent. The alignment is not in it, and bounds are the extent
// from 0 on.

// maxDepth bounds how deep the parts of a decoded layout are nested.
const maxDepth = 256

// Stream returns the View of all elements that follow each other in mem, the first with its origin
// at mem[origin]. Parts of it outside of mem must not be packed or unpacked.
func (l *Layout) Stream(mem []byte, origin int64) View {
	v := View{layout: l, mem: mem, origin: origin}
	if l.Size() > 0 {
		v.count = math.MaxInt64 / l.Size()
	}
	return v
}

// Append appends the layout to b, for Decode.
func (l *Layout) Append(b []byte) []byte {
	return l.shape.append(binary.AppendVarint(b, l.Extent()))
}

func (s *shape) append(b []byte) []byte {
	b = append(b, byte(s.kind))
	b = binary.AppendVarint(b, s.off)
	switch s.kind {
	case shapeBlock:
		return binary.AppendVarint(b, s.size)
	case shapeLoop:
		b = binary.AppendVarint(b, s.count)
		return s.kid.append(binary.AppendVarint(b, s.stride))
	}
	form := listOfBlocks
	switch {
	case s.kids != nil:
		form = listOfKids
	case s.ends == nil:
		form = listOfOne
	}
	b = binary.AppendUvarint(append(b, form), uint64(len(s.offs)))
	at := int64(0)
	for i, off := range s.offs {
		b = binary.AppendVarint(b, off-at)
		at = off
		switch form {
		case listOfBlocks:
			b = binary.AppendVarint(b, s.itemSize(i))
		case listOfKids:
			b = s.kids[i].append(b)
		}
	}
	if form == listOfOne {
		b = s.kid.append(b)
	}
	return b
}

// What the items of an encoded list are.
const (
	listOfBlocks byte = iota
	listOfKids
	listOfOne
)

var errEncoding = errors.New("dtype: not an encoded layout")

// Decode returns the layout that Append has appended to an empty slice.
func Decode(b []byte) (*Layout, error) {
	d := decoder{rest: b}
	extent := d.number()
	s, bytes := d.shape(maxDepth)
	if d.bad || d.overflow || len(d.rest) > 0 || extent < 0 {
		return nil, errEncoding
	}
	return &Layout{shape: s, align: 1, trueSpan: bytes, bounds: span{0, extent}, lowMarked: true, highMarked: true}, nil
}

type decoder struct {
	calc
	rest []byte
	bad  bool
}

func (d *decoder) number() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.bad = true
		return 0
	}
	v := d.rest[0]
	d.rest = d.rest[1:]
	return v
}

// shape decodes a shape and the span of its bytes.
func (d *decoder) shape(depth int) (*shape, span) {
	kind, off := shapeKind(d.byte()), d.number()
	if depth == 0 || kind > shapeList {
		d.bad = true
	}
	if d.bad {
		return block(0, 0), span{}
	}
	switch kind {
	case shapeBlock:
		n := d.number()
		d.bad = d.bad || n < 0
		return block(off, n), d.at(span{0, n}, off)
	case shapeLoop:
		count, stride := d.number(), d.number()
		kid, bytes := d.kid(depth)
		d.bad = d.bad || count < 1
		if d.bad {
			return kid, bytes
		}
		s := &shape{kind: shapeLoop, off: off, count: count, stride: stride, kid: kid}
		s.size, s.blocks = d.mul(kid.size, count), d.mul(kid.blocks, count)
		return s, d.at(d.spread(bytes, count, stride), off)
	}
	return d.list(off, depth)
}

// kid decodes a part of a shape, which has bytes.
func (d *decoder) kid(depth int) (*shape, span) {
	s, bytes := d.shape(depth - 1)
	d.bad = d.bad || s.size < 1 || s.off != 0
	return s, bytes
}

func (d *decoder) list(off int64, depth int) (*shape, span) {
	form := d.byte()
	n, used := binary.Uvarint(d.rest)
	if used <= 0 || n < 1 || n > uint64(len(d.rest)) || form > listOfOne {
		d.bad = true
		return block(0, 0), span{}
	}
	d.rest = d.rest[used:]
	s := &shape{kind: shapeList, off: off, offs: make([]int64, n)}
	spans := make([]span, n)
	at := int64(0)
	for i := range s.offs {
		at = d.add(at, d.number())
		s.offs[i] = at
		switch form {
		case listOfBlocks:
			size := d.number()
			d.bad = d.bad || size < 1
			spans[i] = span{0, size}
			s.size, s.blocks = d.add(s.size, size), s.blocks+1
			s.ends = append(s.ends, s.size)
		case listOfKids:
			var kid *shape
			kid, spans[i] = d.kid(depth)
			s.kids = append(s.kids, kid)
			s.size, s.blocks = d.add(s.size, kid.size), d.add(s.blocks, kid.blocks)
			s.ends = append(s.ends, s.size)
		}
		if d.bad {
			return block(0, 0), span{}
		}
	}
	if form == listOfOne {
		var bytes span
		s.kid, bytes = d.kid(depth)
		for i := range spans {
			spans[i] = bytes
		}
		s.size, s.blocks = d.mul(s.kid.size, int64(n)), d.mul(s.kid.blocks, int64(n))
	}
	all := d.at(spans[0], s.offs[0])
	for i, bytes := range spans {
		all = all.cover(d.at(bytes, s.offs[i]))
	}
	return s, d.at(all, off)
}
