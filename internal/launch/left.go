package launch

// Ranks that exit with status 0 and without Finalize, in a job with Config.ExitLeaves. Programs
// for MPICH do so, and its launcher ends the job with status 0. Here the other ranks continue,
// unless they wait for one that has left: then that one has failed.

import (
	"slices"
	"time"
)

// leftAfter is how long the other ranks must wait without progress before a rank that has left
// counts as failed.
const leftAfter = time.Second

const withoutFinalize = "exited with status 0 without calling Finalize"

// earlyLeavers are the ranks that have left so.
type earlyLeavers struct {
	ranks []int
	watch stuckWatch
	look  *time.Ticker // nil: none has left
}

// ticks returns the channel of the checks.
func (l *earlyLeavers) ticks() <-chan time.Time {
	if l.look == nil {
		return nil
	}
	return l.look.C
}

func (l *earlyLeavers) stop() {
	if l.look != nil {
		l.look.Stop()
	}
}

// recordEarlyExit records a rank that exited without Finalize. It has failed if others are in a fence, and
// without boards, because nobody sees who waits for it.
func (j *job) recordEarlyExit(rank int) {
	if _, ok := j.backend.pulse(); !j.cfg.ExitLeaves || !ok || j.server.FenceWaiters() > 0 {
		j.diedUnfinalized(rank)
		return
	}
	l := &j.leavers
	l.ranks = append(l.ranks, rank)
	if l.look == nil {
		l.watch.after = leftAfter
		l.look = time.NewTicker(stuckInterval(leftAfter))
	}
}

// checkLeft fails the job if all ranks still in it wait, without progress.
func (j *job) checkLeft(now time.Time) {
	p, ok := j.backend.pulse()
	if !ok || j.ending.begun || p.moving {
		return
	}
	if _, step := j.leavers.watch.look(p, now); step == stuckReport {
		j.diedUnfinalized(j.leavers.ranks[0])
	}
}

func (j *job) diedUnfinalized(rank int) {
	j.recordFailure(rank, withoutFinalize, "exited without Finalize", 1)
}

// reportLeft names the ranks that have left, if the job has not failed.
func (j *job) reportLeft() {
	if l := &j.leavers; j.outcome.cause == nil && len(l.ranks) > 0 {
		slices.Sort(l.ranks)
		j.notice(ranksNoun(l.ranks) + " " + withoutFinalize)
	}
}
