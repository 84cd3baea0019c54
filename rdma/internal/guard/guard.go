package guard

// MaxStrikes is how many accesses of a peer may be refused. An honest one has none, so few
// are enough, and one mistake in a program should end with an error of its own.
const MaxStrikes = 16

// remembered is how many keys are known to have ended: more than accesses may be under way
// to a peer when an operation fails and gives up its memory.
const remembered = 128

// Strikes counts the accesses of a peer that were refused.
type Strikes uint8

// Guard is what a device keeps of keys and of peers that it was not told of.
type Guard struct {
	ended     [remembered]uint64
	next      int
	strangers Strikes
}

// End notes that the registration with that key has ended.
func (g *Guard) End(key uint64) {
	g.ended[g.next] = key
	g.next = (g.next + 1) % remembered
}

// Strike counts an access that was refused. s are the strikes of its peer, and told says
// that the device was given its address. It is true if that was one too many.
func (g *Guard) Strike(s *Strikes, told bool, key uint64) (out bool) {
	if key != 0 {
		for _, k := range g.ended {
			if k == key {
				return false
			}
		}
	}
	if !told {
		s = &g.strangers
	}
	if *s < MaxStrikes {
		*s++
	}
	return *s == MaxStrikes
}

// Bars reports whether accesses of a peer are not to be looked at.
func (g *Guard) Bars(s Strikes, told bool) bool {
	if !told {
		s = max(s, g.strangers)
	}
	return s >= MaxStrikes
}
