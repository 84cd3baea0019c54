package launch

// How long ranks may run after one of them has failed. Each rank must get a core, notice
// the failure, return from its call, print its error and exit. If a thousand ranks share
// two cores, that takes seconds. So the time is measured not from the failure but from
// the last sign of progress: a rank has noticed the failure, or has exited. After a while
// without such a sign, the remaining ranks compute or hang, and the launcher ends them.
// Functions take the current time as an argument.

import "time"

const (
	// quietBase is the time without a sign if there is a core for each rank; quietShare
	// is added for each rank that shares a core, because a rank gets time slices of a
	// few milliseconds between those of the others.
	quietBase  = 500 * time.Millisecond
	quietShare = 5 * time.Millisecond
	// graceLimit bounds the total time, in multiples of the quiet time.
	graceLimit = 10
	// graceLook is the interval of the checks.
	graceLook = 100 * time.Millisecond
)

// grace computes the time left for ranks to exit by themselves.
type grace struct {
	fixed time.Duration // Limits.Grace; 0: adaptive, as above
	cores int           // of this machine

	began, moved time.Time
	limit        time.Duration
	signs        int
}

// quiet returns the allowed time without a sign of progress for a number of ranks.
func (g *grace) quiet(ranks int) time.Duration {
	if g.fixed > 0 {
		return g.fixed
	}
	return quietBase + quietShare*time.Duration(ranks)/time.Duration(max(1, g.cores))
}

// begin is called at the first failure.
func (g *grace) begin(now time.Time, ranks int) {
	g.began, g.moved, g.signs = now, now, 0
	g.limit = graceLimit * g.quiet(ranks)
}

// remaining returns the remaining time, given the number of remaining ranks and the number of
// signs so far.
func (g *grace) remaining(now time.Time, ranks, signs int) time.Duration {
	if g.fixed > 0 {
		return g.fixed - now.Sub(g.began)
	}
	if signs != g.signs {
		g.signs, g.moved = signs, now
	}
	return min(g.quiet(ranks)-now.Sub(g.moved), g.limit-now.Sub(g.began))
}
