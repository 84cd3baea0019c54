package radix

import "github.com/muster-mpi/muster/mpi"

// group is how many receives are posted at a time (T1 figure 4.18).
const group = 4

const tagKeys = 1

// exchange sends the keys to the ranks to which they belong. At distance 1 every rank sends
// to the next one and receives from the one before, and so on for larger distances. A rank
// posts the receives of a group before it sends, and all ranks go through the groups in the
// same order, so that a send always finds its receive posted or about to be.
func (s *sorter) exchange() error {
	s.clock.EnterMPI()
	defer s.clock.LeaveMPI()
	me, size := s.c.Rank(), s.c.Size()
	for first := 1; first < size; first += group {
		s.reqs = s.reqs[:0]
		last := min(first+group, size)
		for distance := first; distance < last; distance++ {
			src := (me - distance + size) % size
			if r := s.recvs[src]; r.from < r.to {
				s.reqs = append(s.reqs, mpi.Irecv(s.c, s.staged[r.from:r.to], src, tagKeys))
			}
		}
		for distance := first; distance < last; distance++ {
			dst := (me + distance) % size
			if r := s.sends[dst]; r.from < r.to {
				if err := mpi.Send(s.c, s.byBits[r.from:r.to], dst, tagKeys); err != nil {
					return err
				}
			}
		}
		if err := mpi.WaitAll(s.reqs...); err != nil {
			return err
		}
	}
	return nil
}
