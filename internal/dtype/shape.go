package dtype

// shape is the compact form of a layout: a tree whose in-order traversal lists the
// bytes of one element. The builders below merge adjacent pieces, so that a regular
// layout has a small tree.
//
//	block  size bytes at off
//	loop   count times kid, stride apart
//	list   items at offs: all like kid, or blocks that end at ends in the packed
//	       stream, or kids that end there
//
// A kid of a loop or list has off 0; the parent holds the offset. Shapes are immutable
// and shared.
type shape struct {
	kind   shapeKind
	off    int64
	size   int64 // packed bytes
	blocks int64 // separate pieces
	count  int64
	stride int64
	kid    *shape
	offs   []int64
	ends   []int64
	kids   []*shape
}

type shapeKind uint8

const (
	shapeBlock shapeKind = iota
	shapeLoop
	shapeList
)

// block returns the shape of n contiguous bytes. A block of no bytes is the empty shape.
func block(off, n int64) *shape {
	s := &shape{kind: shapeBlock, off: off, size: n}
	if n > 0 {
		s.blocks = 1
	}
	return s
}

// shift moves a shape.
func (s *shape) shift(off int64) *shape {
	if off == 0 {
		return s
	}
	moved := *s
	moved.off += off
	return &moved
}

// repeat returns count copies of s, stride apart. Adjacent copies become one block, and
// copies of a loop that continue it become one loop.
func repeat(count, stride int64, s *shape) *shape {
	switch {
	case count == 0 || s.size == 0:
		return block(0, 0)
	case count == 1:
		return s
	case s.kind == shapeBlock && stride == s.size:
		return block(s.off, s.size*count)
	case s.kind == shapeLoop && stride/s.count == s.stride && stride%s.count == 0:
		grown := *s
		grown.count *= count
		grown.size *= count
		grown.blocks *= count
		return &grown
	}
	return &shape{
		kind: shapeLoop, off: s.off, size: s.size * count, blocks: s.blocks * count,
		count: count, stride: stride, kid: s.shift(-s.off),
	}
}

// inlineLimit is the longest list that is inlined when it becomes part of another, so
// that adjacent items can be merged. The limit bounds how much a layout can grow by
// nesting.
const inlineLimit = 8

// joiner collects the parts of a list in packing order.
type joiner struct{ items []joined }

// joined is one part; a nil kid means a block of size bytes.
type joined struct {
	off, size int64
	kid       *shape
}

// add appends a shape at off. Empty shapes are dropped; a block that begins where the
// last one ends extends it.
func (j *joiner) add(off int64, s *shape) {
	switch {
	case s.size == 0:
	case s.kind == shapeBlock:
		j.addBlock(off+s.off, s.size)
	case s.kind == shapeList && len(s.offs) <= inlineLimit:
		for i, o := range s.offs {
			if s.kids == nil && s.kid == nil {
				j.addBlock(off+s.off+o, s.itemSize(i))
			} else {
				j.add(off+s.off+o, s.item(i))
			}
		}
	default:
		j.items = append(j.items, joined{off: off, size: s.size, kid: s})
	}
}

func (j *joiner) addBlock(off, n int64) {
	if len(j.items) > 0 {
		if last := &j.items[len(j.items)-1]; last.kid == nil && last.off+last.size == off {
			last.size += n
			return
		}
	}
	j.items = append(j.items, joined{off: off, size: n})
}

// join returns the smallest shape that holds the parts.
func (j *joiner) join() *shape {
	items := j.items
	if len(items) == 0 {
		return block(0, 0)
	}
	first := items[0]
	if len(items) == 1 {
		return first.shape()
	}
	alike, evenly, allBlocks := true, true, true
	step := items[1].off - first.off
	for i, it := range items {
		alike = alike && it.kid == first.kid && it.size == first.size
		evenly = evenly && it.off == first.off+int64(i)*step
		allBlocks = allBlocks && it.kid == nil
	}
	if alike && evenly {
		return repeat(int64(len(items)), step, first.shape())
	}
	s := &shape{kind: shapeList, offs: make([]int64, len(items))}
	if alike {
		// The kid's own offset moves into offs.
		kid := first.shape().shift(-first.off)
		inner := kid.off
		s.kid = kid.shift(-inner)
		for i, it := range items {
			s.offs[i] = it.off + inner
		}
		s.size, s.blocks = first.size*int64(len(items)), s.kid.blocks*int64(len(items))
		return s
	}
	s.ends = make([]int64, len(items))
	if !allBlocks {
		s.kids = make([]*shape, len(items))
	}
	for i, it := range items {
		s.offs[i] = it.off
		s.size += it.size
		s.ends[i] = s.size
		if allBlocks {
			s.blocks++
			continue
		}
		kid := it.shape().shift(-it.off)
		s.offs[i] += kid.off
		s.kids[i] = kid.shift(-kid.off)
		s.blocks += kid.blocks
	}
	return s
}

func (it joined) shape() *shape {
	if it.kid == nil {
		return block(it.off, it.size)
	}
	return it.kid.shift(it.off)
}

// item returns the shape of item i of a list of kids.
func (s *shape) item(i int) *shape {
	if s.kids != nil {
		return s.kids[i]
	}
	return s.kid
}

// itemSize returns the packed size of item i of a list.
func (s *shape) itemSize(i int) int64 {
	if s.ends == nil {
		return s.kid.size
	}
	return s.ends[i] - s.itemStart(i)
}

// itemStart returns the offset of item i of a list in the packed stream.
func (s *shape) itemStart(i int) int64 {
	switch {
	case s.ends == nil:
		return int64(i) * s.kid.size
	case i == 0:
		return 0
	}
	return s.ends[i-1]
}

// itemAt returns the item of a list that holds packed byte pos.
func (s *shape) itemAt(pos int64) int {
	if s.ends == nil {
		return int(pos / s.kid.size)
	}
	lo, hi := 0, len(s.ends)-1
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if s.ends[mid] > pos {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}
