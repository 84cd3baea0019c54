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

// declared notes the terms of a rank.
func (o *outlive) declared(terms string) {
	if t := pmi.ReadTerms(terms); t.Survives() {
		o.wanted = true
	}
}

// continues reports whether the job continues if a rank fails now. All ranks must have
// started: they wait for each other until then.
func (j *job) continues() bool { return j.outlive.wanted && !j.ending && j.server.Passed() > 0 }

// lost handles the failure of a rank by itself, in contrast to an abort of the job. If
// no rank leaves the job in order, the first failure is what the job ends with.
func (j *job) lost(rank int, why, status string, code int) {
	if !j.continues() {
		j.died(rank, why, status, code)
		return
	}
	if j.outlive.first == nil {
		j.outlive.first, j.outlive.code = &cause{rank, why}, code
	}
	if j.living == 0 && j.outlive.left == 0 {
		j.died(j.outlive.first.rank, j.outlive.first.text, status, j.outlive.code)
		return
	}
	j.announce(spansOf(rank), status)
	j.notice(fmt.Sprintf("rank %d (pid %d on %s): %s; the job continues with %s", rank, j.ranks[rank].pid, j.backend.host(rank), why, countOf(j.living)))
}

func countOf(ranks int) string {
	if ranks == 1 {
		return "1 rank"
	}
	return fmt.Sprintf("%d ranks", ranks)
}
