package p2p

// Whether RTRs are worth sending (T1 4.2.6, 4.4.2). A program whose senders are
// early, or whose messages are shorter than its buffers, gains nothing from them
// and pays for each. The receiver alone decides: it sees of every RTR whether the
// message came by it, and nothing has to be told to the sender, to whom an RTR
// that does not come is no different from one that is late. What was learnt is
// kept for each envelope, in the entry of matching, which is taken back with it.

import "math/bits"

// habit is what a receiver knows about the RTRs of an envelope.
type habit struct {
	wasted  uint16 // the latest RTRs, a bit for each that was wasted
	probes  uint8  // while stopped: a bit for each that was used
	skipped uint8  // while stopped: candidates since the last probe
	stopped bool
}

// habitRule is when to stop and when to go on.
type habitRule struct {
	never  bool  // send none
	always bool  // never stop
	spare  int   // RTRs that may be wasted of the latest 16
	every  uint8 // while stopped, one of so many candidates is sent, to see
	of     uint8 // probes that are looked at
	resume int   // of them must have been used to go on
}

// habitRules are those of a configuration. 4 wasted of 16 leave less than 80 %
// used; 5 used of 6 probes are more than that (T1 4.4.2).
func habitRules(speculate string) habitRule {
	return habitRule{never: speculate == "never", always: speculate == "always",
		spare: 3, every: 32, of: 6, resume: 5}
}

// allow asks whether the next candidate sends its RTR.
func (h *habit) allow(r *habitRule) bool {
	if !h.stopped {
		return true
	}
	if h.skipped++; h.skipped < r.every {
		return false
	}
	h.skipped = 0
	return true
}

// learn hears what became of an RTR.
func (h *habit) learn(r *habitRule, used bool) {
	bit := uint8(0)
	if used {
		bit = 1
	}
	switch {
	case r.always:
	case !h.stopped:
		h.wasted = h.wasted<<1 | uint16(1-bit)
		if bits.OnesCount16(h.wasted) > r.spare {
			*h = habit{stopped: true}
		}
	default:
		h.probes = (h.probes<<1 | bit) & (1<<r.of - 1)
		if bits.OnesCount8(h.probes) >= r.resume {
			*h = habit{}
		}
	}
}
