package engine

import "github.com/muster-mpi/muster/internal/p2p"

// collectives are those of a rank that are under way, and the communicators that have made
// some.
type collectives struct {
	active []*Collective
	held   int                     // active ones that hold sends back until a peer arrives
	broken map[uint32]*BrokenError // contexts whose collectives have failed; nil: none
	comms  map[uint32]*Comm        // communicators that have made collective calls

	started   uint64
	aware     uint64 // of these, with sends ordered by the peers' arrival
	overtaken uint64 // sends that overtook others because their peers had arrived
}

func (s *collectives) add(co *Collective) {
	co.index = len(s.active)
	s.active = append(s.active, co)
}

// remove removes an active collective; the last one takes its index.
func (s *collectives) remove(co *Collective) {
	last := len(s.active) - 1
	s.active[last].index = co.index
	s.active[co.index] = s.active[last]
	s.active[last] = nil
	s.active = s.active[:last]
}

// find returns the active collective that an operation represents, or nil.
func (s *collectives) find(x *p2p.Xfer) *Collective {
	for _, co := range s.active {
		if co.progress.whole == x {
			return co
		}
	}
	return nil
}

// err returns why the collectives of a context have failed, or nil.
func (s *collectives) err(ctx uint32) error {
	if b := s.broken[ctx]; b != nil {
		return b
	}
	return nil
}

// fail records that the collectives of a context have failed.
func (s *collectives) fail(ctx uint32, b *BrokenError) {
	if s.broken == nil {
		s.broken = make(map[uint32]*BrokenError)
	}
	if s.broken[ctx] == nil {
		s.broken[ctx] = b
	}
}
