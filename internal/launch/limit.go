package launch

import (
	"fmt"
	"time"
)

// limitTimer returns the timer of Limits.Job; it never fires if there is no limit.
func limitTimer(limit time.Duration) *time.Timer {
	t := time.NewTimer(max(limit, time.Hour))
	t.Stop()
	if limit > 0 {
		t.Reset(limit)
	}
	return t
}

// timedOut reports which rank waits for which, the first question about a job that takes
// too long, and ends the job.
func (j *job) timedOut() {
	j.takeAll()
	if j.ending.begun {
		return // a rank has failed, and the others are being ended
	}
	if j.ranks.pending == 0 {
		j.reportWaits(nil, func(bool) string { return "the time limit has passed; which rank waits for which:" })
	}
	j.ranks.pending = 0
	j.starting.over = true
	j.outcome.fail(-1, fmt.Sprintf("the job has taken longer than %s, the limit of --timeout", seconds(j.cfg.Limits.Job)), TimeoutStatus)
	j.endNow()
}
