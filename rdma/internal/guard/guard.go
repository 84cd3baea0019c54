package guard

// MaxStrikes is the maximum number of refused accesses of a peer. A correct peer has
// none, so few are enough; but a single mistake in a program should end with its own
// error.
const MaxStrikes = 16

// remembered is how many deregistered keys are kept: more than a peer may have accesses
// in flight when an operation fails and deregisters its memory.
const remembered = 128

// Strikes counts the refused accesses of a peer.
type Strikes uint8

// Guard is the state of a device: recently deregistered keys, and the shared strikes of
// peers that were not resolved.
type Guard struct {
	ended     [remembered]uint64
	next      int
	strangers Strikes
}

// End records that a key was deregistered.
func (g *Guard) End(key uint64) {
	g.ended[g.next] = key
	g.next = (g.next + 1) % remembered
}

// Strike counts a refused access. s is the strike count of the peer, and resolved
// reports whether the device was given its address. It returns true if the limit is
// reached.
func (g *Guard) Strike(s *Strikes, resolved bool, key uint64) (out bool) {
	if key != 0 {
		for _, k := range g.ended {
			if k == key {
				return false
			}
		}
	}
	if !resolved {
		s = &g.strangers
	}
	if *s < MaxStrikes {
		*s++
	}
	return *s == MaxStrikes
}

// Bars reports whether all accesses of a peer are to be refused.
func (g *Guard) Bars(s Strikes, resolved bool) bool {
	if !resolved {
		s = max(s, g.strangers)
	}
	return s >= MaxStrikes
}
