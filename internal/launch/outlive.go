package launch

// Jobs that survive the failure of a rank: their ranks declare it when they join
// (MUSTER_ON_FAILURE=return, pmi.Terms.Survives). The launcher then only publishes the
// failure on the boards, and the other ranks decide what to do.

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/pmi"
)

// outlive is the state of a job for that.
type outlive struct {
	wanted bool
	left   int    // ranks that have left in order
	first  *cause // the first failure
	code   int    // its status
}

// noteTerms notes the terms of a rank.
func (o *outlive) noteTerms(terms string) {
	if t := pmi.ReadTerms(terms); t.Survives() {
		o.wanted = true
	}
}

// continues reports whether the job continues if a rank fails now. All ranks must have
// started. Until then they wait for each other in several fences, and in none afterwards.
func (j *job) continues() bool {
	return j.outlive.wanted && !j.ending.begun && j.server.FencesPassed() > 0 && j.server.FenceWaiters() == 0
}

// recordFailure handles the failure of a rank by itself, in contrast to an abort of the job.
func (j *job) recordFailure(rank int, why, status string, code int) {
	ended := j.forwarded.last != 0 && j.ranks.all[rank].end.signal == j.forwarded.last // by the user
	if ended || !j.continues() {
		j.failRank(rank, why, status, code)
		return
	}
	text := fmt.Sprintf("rank %d (pid %d on %s): %s", rank, j.ranks.all[rank].pid, j.backend.host(rank), why)
	j.continueWithout(spansOf(rank), cause{rank, why}, text, status, code)
}

// continueWithout announces failed ranks of one host. If no rank is left, and none has left
// in order, the job ends with its first failure.
func (j *job) continueWithout(ranks spans, why cause, text, status string, code int) {
	o := &j.outlive
	if o.first == nil {
		o.first, o.code = &why, code
	}
	j.announce(ranks, status)
	if j.ranks.living == 0 && o.left == 0 && (j.cfg.isReplacement() || j.cfg.replacements.living() == 0) {
		j.outcome.fail(o.first.rank, o.first.text, o.code)
		j.beginEnding()
		return
	}
	if j.ranks.living > 0 {
		text += "; the job continues with " + countOf(j.ranks.living)
	}
	j.notice(text)
}

func countOf(ranks int) string {
	if ranks == 1 {
		return "1 rank"
	}
	return fmt.Sprintf("%d ranks", ranks)
}
