package p2p

// Whether RTRs are worth sending (T1 4.2.6, 4.4.2). A program whose senders are
// early, or whose messages are shorter than its buffers, gains nothing from them
// and pays for each. The receiver alone decides: it sees of every RTR whether the
// message came by it, and nothing has to be told to the sender, to whom an RTR
// that does not come is no different from one that is late. What was learnt is
// kept for each envelope, in the entry of matching, which is taken back with it.

import "math/bits"

// specHistory is what a receiver knows about the RTRs of an envelope.
type specHistory struct {
	wasted  uint64 // the latest RTRs, a bit for each that was wasted
	seen    uint8  // how many of these bits count
	probes  uint8  // while stopped: a bit for each that was used
	pause   uint16 // while stopped: candidates between two probes
	skipped uint16 // while stopped: candidates since the last probe
	stopped bool
}

// specRule is when to stop and when to go on.
type specRule struct {
	never  bool   // send none
	always bool   // never stop
	spare  int    // RTRs that may be wasted at the beginning
	pause  uint16 // while stopped, one of so many candidates is sent, to see
	rest   uint16 // the pause doubles with every such RTR that is wasted, up to this, and halves with one that is used
	of     uint8  // probes that are looked at
	resume int    // of them must have been used to go on
}

// newSpecRule are those of a configuration. It stops when less than 80 % of the
// latest 64 were used, or 4 were wasted before there were so many; 7 used of 8
// probes are more than 80 % (T1 4.4.2). A window of 16 stopped for good at every
// preemption of the sender; a pause that does not grow cost a program that never
// gains 2 to 5 %.
func newSpecRule(speculate string) specRule {
	return specRule{never: speculate == "never", always: speculate == "always",
		spare: 3, pause: 16, rest: 512, of: 8, resume: 7}
}

// allow asks whether the next candidate sends its RTR.
func (h *specHistory) allow(r *specRule) bool {
	if !h.stopped {
		return true
	}
	if h.skipped++; h.skipped < h.pause {
		return false
	}
	h.skipped = 0
	return true
}

// learn hears what became of an RTR.
func (h *specHistory) learn(r *specRule, used bool) {
	bit := uint8(0)
	if used {
		bit = 1
	}
	switch {
	case r.always:
	case !h.stopped:
		h.wasted = h.wasted<<1 | uint64(1-bit)
		h.seen = min(h.seen+1, 64)
		if bits.OnesCount64(h.wasted) > max(r.spare, int(h.seen)/5) {
			*h = specHistory{stopped: true, pause: r.pause}
		}
	default:
		h.probes = (h.probes<<1 | bit) & (1<<r.of - 1)
		if used {
			h.pause = max(h.pause/2, r.pause)
		} else {
			h.pause = min(2*h.pause, r.rest)
		}
		if bits.OnesCount8(h.probes) >= r.resume {
			*h = specHistory{}
		}
	}
}
