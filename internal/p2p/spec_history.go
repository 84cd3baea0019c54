package p2p

// Speculation history: whether RTRs are worth sending (T1 4.2.6, 4.4.2). A program whose
// senders are early, or whose messages are shorter than its buffers, gains nothing from
// RTRs and pays for each. The receiver alone decides, because it sees for every RTR
// whether the message used it. The sender needs no notice: to it, a missing RTR is the
// same as a late one. The history is kept per envelope, in the entry of matching, and is
// discarded with it.

import "math/bits"

// specHistory records the outcome of an envelope's RTRs.
type specHistory struct {
	wasted  uint64 // the latest RTRs, a set bit for each wasted one
	seen    uint8  // number of valid bits
	probes  uint8  // while stopped: a set bit for each used probe
	pause   uint16 // while stopped: candidates between two probes
	skipped uint16 // while stopped: candidates since the last probe
	stopped bool
}

// specRule decides when to stop and when to resume sending RTRs.
type specRule struct {
	never  bool   // send no RTR
	always bool   // never stop
	spare  int    // RTRs that may be wasted initially
	pause  uint16 // while stopped, one of so many candidates is sent as a probe
	rest   uint16 // longest pause: it doubles with every wasted probe and halves with a used one
	of     uint8  // number of probes considered
	resume int    // used probes among these that resume sending
}

// newSpecRule returns the rule of a configuration. It stops when less than 80 % of the
// latest 64 RTRs were used, or 4 were wasted before there were so many; 7 used of 8 probes
// are more than 80 % (T1 4.4.2). A window of 16 stopped for good at every preemption of
// the sender; a pause that does not grow cost a program that never gains 2 to 5 %.
func newSpecRule(speculate string) specRule {
	return specRule{never: speculate == "never", always: speculate == "always",
		spare: 3, pause: 16, rest: 512, of: 8, resume: 7}
}

// allow reports whether the next candidate sends its RTR.
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

// learn records whether an RTR was used.
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
