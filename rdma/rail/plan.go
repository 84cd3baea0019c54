package rail

// Which rail carries what: pickRail for a message in one piece, stripe for an operation
// that is cut. Both depend only on the loads of the rails to one peer.
//
// Striping is water-filling: all rails should finish at the same moment, so each gets
// what its speed allows until then, minus its backlog.

// load is the load of a rail for one peer.
type load struct {
	speed   float64 // bytes per nanosecond
	backlog int     // bytes given to it that have not arrived
	open    bool    // it may be used
	full    bool    // it may be used, but accepts nothing more at the moment
}

const (
	// minStripe is the shortest piece for which another rail is worth its cost. T2
	// chapter 3 has 1 KB where the network interface does the work; here a processor
	// does, and a piece costs it a few microseconds.
	minStripe = 8 << 10
	// stickiness is how many bytes more than another a rail may have queued and still
	// get the next short message. Acks are piggybacked on replies, so two peers that
	// alternate should use one rail.
	stickiness = 4 << 10
)

// pickRail returns the rail for a message of n bytes: the one that will finish it
// first. The preferred rail wins if it is not much later. It returns -1 if none can
// accept it.
func pickRail(n int, rails []load, preferred int) int {
	best, soonest := -1, 0.0
	for i := range rails {
		l := &rails[i]
		if !l.open || l.full {
			continue
		}
		ready := float64(l.backlog+n) / l.speed
		if i == preferred {
			ready -= stickiness / l.speed
		}
		if best < 0 || ready < soonest {
			best, soonest = i, ready
		}
	}
	return best
}

// stripe returns the rail and the length of the next piece, at most most bytes, of what
// is left of a long operation. It returns -1 if the piece should wait for a rail that
// is full.
func stripe(left, most int, rails []load) (rail, size int) {
	var out uint64 // rails that get nothing
	for {
		speed, water, members := 0.0, left, 0
		for i := range rails {
			if rails[i].open && out>>i&1 == 0 {
				speed += rails[i].speed
				water += rails[i].backlog
				members++
			}
		}
		if members == 0 {
			return -1, 0
		}
		level := float64(water) / speed // when all are through
		poorest, least := -1, 0.0
		best, share, soonest := -1, 0.0, 0.0
		for i := range rails {
			l := &rails[i]
			if !l.open || out>>i&1 != 0 {
				continue
			}
			gets := level*l.speed - float64(l.backlog)
			if poorest < 0 || gets < least {
				poorest, least = i, gets
			}
			if ready := float64(l.backlog) / l.speed; !l.full && (best < 0 || ready < soonest) {
				best, share, soonest = i, gets, ready
			}
		}
		if members > 1 && least < minStripe {
			out |= 1 << poorest
			continue
		}
		if best < 0 {
			return -1, 0
		}
		return best, cut(min(left, int(share)+1), most)
	}
}

// cut divides a share into pieces of equal length, and returns that length.
func cut(share, most int) int {
	pieces := max((share+most-1)/most, 1)
	return min((share+pieces-1)/pieces, most)
}
