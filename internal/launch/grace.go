package launch

// How long ranks may go on after one of them has died. Each must get a core, learn of the
// death, return from its call, print its error and end, and where a thousand ranks
// share two cores that takes seconds for all of them. So time is not counted from the
// death but from the last sign that somebody is still at it: a rank that has learnt of
// the death, or has ended. When there has been none for a while, the rest is computing or
// hangs, and is ended. Pure: time comes in as an argument.

import "time"

const (
	// quietBase is how long it may be quiet with a core for each rank, quietShare what
	// each rank beside it on a core adds: a rank is let in for a few milliseconds, then
	// all others are.
	quietBase  = 500 * time.Millisecond
	quietShare = 5 * time.Millisecond
	// graceLimit is how many such times there may be in all.
	graceLimit = 10
	// graceLook is how often the signs are looked for.
	graceLook = 100 * time.Millisecond
)

// grace is the time that is left for ranks to end by themselves.
type grace struct {
	fixed time.Duration // Config.Grace; 0: by the rule above
	cores int           // of this machine

	began, moved time.Time
	limit        time.Duration
	signs        int
}

// quiet is how long there may be no sign of so many ranks.
func (g *grace) quiet(ranks int) time.Duration {
	if g.fixed > 0 {
		return g.fixed
	}
	return quietBase + quietShare*time.Duration(ranks)/time.Duration(max(1, g.cores))
}

// begin is called at the first death.
func (g *grace) begin(now time.Time, ranks int) {
	g.began, g.moved, g.signs = now, now, 0
	g.limit = graceLimit * g.quiet(ranks)
}

// left is how much time there is, given how many ranks are left and how many signs
// there have been so far.
func (g *grace) left(now time.Time, ranks, signs int) time.Duration {
	if g.fixed > 0 {
		return g.fixed - now.Sub(g.began)
	}
	if signs != g.signs {
		g.signs, g.moved = signs, now
	}
	return min(g.quiet(ranks)-now.Sub(g.moved), g.limit-now.Sub(g.began))
}
