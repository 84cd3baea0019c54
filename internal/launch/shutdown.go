package launch

// The end of a job after its first failure: time for the ranks to exit by themselves
// (grace.go), then SIGTERM, then SIGKILL.

import (
	"fmt"
	"syscall"
	"time"
)

type shutdown struct {
	begun     bool
	grace     grace
	timer     *time.Timer // the next step, or the next check
	survivors int         // ranks alive at the first failure
	noticed   int         // of these, how many had noticed it when SIGTERM was sent
	asked     bool        // SIGTERM was sent
	killed    int         // ranks killed by SIGKILL
}

func newShutdown(g grace) shutdown {
	s := shutdown{grace: g, timer: time.NewTimer(time.Hour)}
	s.timer.Stop()
	return s
}

// report describes what it took to end a job of a number of ranks. fenced: all had started.
func (s *shutdown) report(ranks int, fenced bool) (lines []string) {
	if s.killed > 0 {
		lines = append(lines, fmt.Sprintf("killed ranks that did not exit by themselves: %d of %d", s.killed, ranks))
	}
	if s.asked && s.survivors > 0 && s.noticed < s.survivors && fenced {
		lines = append(lines, fmt.Sprintf("%d of the %d other ranks had noticed the failure when they got SIGTERM; --grace gives them more time", s.noticed, s.survivors))
	}
	return lines
}

// beginEnding gives the remaining ranks the time to exit by themselves.
func (j *job) beginEnding() {
	if e := &j.ending; !e.begun {
		e.begun = true
		j.ranks.ended, e.survivors = 0, j.ranks.living
		e.grace.begin(time.Now(), j.ranks.living)
		e.timer.Reset(graceLook)
	}
}

// continueEnding ends the remaining ranks, unless they are still exiting by themselves. It
// handles pending events first: the ranks may also have kept this process off its core.
func (j *job) continueEnding(now time.Time) {
	if e := &j.ending; !e.asked && e.survivors > 0 {
		j.takeAll()
		if left := e.grace.remaining(now, j.ranks.living, j.ranks.ended+j.backend.countNoticed()); left > 0 {
			e.timer.Reset(min(left, graceLook))
			return
		}
	}
	j.endNow()
}

// endNow takes the next step to end the job: first SIGTERM, then SIGKILL.
func (j *job) endNow() {
	e := &j.ending
	e.begun = true
	if !e.asked {
		e.asked = true
		e.noticed = j.backend.countNoticed()
		j.log.Info("SIGTERM to the remaining ranks", "ranks", j.ranks.living)
		j.backend.signalAll(syscall.SIGTERM)
		e.timer.Reset(e.grace.quiet(j.ranks.living) / 2)
		return
	}
	if e.killed == 0 {
		e.killed = j.ranks.living
	}
	j.log.Info("SIGKILL to the remaining ranks", "ranks", j.ranks.living)
	j.backend.signalAll(syscall.SIGKILL)
	e.timer.Reset(time.Second) // repeat it for a process that is blocked in the kernel
}
