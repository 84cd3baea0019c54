package regcache

// Regions by number. The index holds numbers instead of pointers; regions are allocated in
// chunks, which never move.

type regions struct {
	chunks []*[chunkLen]region
	free   *region // linked by next
}

const (
	chunkBits = 8
	chunkLen  = 1 << chunkBits
)

func (s *regions) at(id uint32) *region { return &s.chunks[id>>chunkBits][id&(chunkLen-1)] }

// take returns a free region.
func (s *regions) take() *region {
	if s.free == nil {
		chunk := new([chunkLen]region)
		start := uint32(len(s.chunks)) << chunkBits
		s.chunks = append(s.chunks, chunk)
		for i := chunkLen - 1; i >= 0; i-- {
			if id := start + uint32(i); id != 0 { // 0 is no region
				chunk[i].id = id
				chunk[i].next, s.free = s.free, &chunk[i]
			}
		}
	}
	r := s.free
	s.free = r.next
	r.next = nil
	return r
}

// release clears r, above all its memory, and frees it.
func (s *regions) release(r *region) {
	*r = region{id: r.id, next: s.free}
	s.free = r
}
