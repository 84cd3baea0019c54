package launch

// Ranks that are not waiting while others are. The board says only that they do not wait;
// what their processes do instead, the kernel tells: it stopped them, they sleep, or
// they use a core. A rank that uses a core computes, or polls (Test, Iprobe), which looks
// the same from outside. That may be all right however long it takes, so it is told as
// information; a rank that sleeps or is stopped is not going to end the others' wait soon.

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// processState is what the kernel says about the process of a rank.
type processState struct {
	pid    int
	letter byte          // R, S, D, T, Z as in ps(1); 0: not known
	cpu    time.Duration // it has used so far
}

func (p processState) stopped() bool { return p.letter == 'T' || p.letter == 't' }

// rankRow is what is known of a rank: what it says of itself, and what the kernel does.
type rankRow struct {
	pmi.Row
	process processState
}

// away reports whether a rank is not waiting: it computes, or has not joined.
func (r *rankRow) away(ended func(rank int) string) bool {
	return ended(r.Rank) == "" && (r.State == pmi.RowRunning || r.State == pmi.RowAbsent)
}

// cannotMove reports whether a rank is away, or waits and is stopped: no message moves it.
func (r *rankRow) cannotMove(ended func(rank int) string) bool {
	return r.away(ended) || ended(r.Rank) == "" && r.State == pmi.RowWaiting && r.process.stopped()
}

// sample is the rows at an earlier time, to see who has used a core since.
type sample struct {
	rows []rankRow
	at   time.Time
}

// idleShare is how much of the time a process may use a core and still be one that
// sleeps: the runtime and timers of a sleeping program need some.
const idleShare = 0.02

// computes reports whether a rank has used a core since the sample, and how much of it.
// known is false if there is nothing to tell by.
func (s *sample) computes(r *rankRow, now time.Time) (used, in time.Duration, computes, known bool) {
	if s == nil || r.Rank >= len(s.rows) || r.process.letter == 0 || s.rows[r.Rank].process.pid != r.process.pid {
		return 0, 0, false, false
	}
	was := &s.rows[r.Rank].process
	used, in = r.process.cpu-was.cpu, now.Sub(s.at)
	// One that waits for a core, which others use, is ready to compute. Once that may be
	// a timer of one that sleeps.
	return used, in, used.Seconds() > idleShare*in.Seconds() || was.letter == 'R' && r.process.letter == 'R', true
}

// describeAway says what a rank does that does not wait; "" if nothing is known but that.
func (s *sample) describeAway(r *rankRow, host string, now time.Time) (text string, computes bool) {
	used, in, computes, known := s.computes(r, now)
	did := "has not been in an MPI call"
	switch {
	case r.State == pmi.RowAbsent:
		did = "has not joined the job"
	case !r.Started:
		did = "is still in Init"
	case known && computes && !r.process.stopped():
		did = "has not waited in an MPI call"
	}
	if r.Started && r.Since > 0 {
		did += " for " + seconds(now.Sub(time.Unix(0, r.Since)))
	}
	where := fmt.Sprintf("(pid %d on %s)", r.process.pid, host)
	switch {
	case r.process.stopped():
		return fmt.Sprintf("%s: it is stopped %s; kill -CONT %d lets it go on", did, where, r.process.pid), false
	case !known:
		return "", r.process.letter == 0 || s == nil
	case computes:
		return fmt.Sprintf("%s: it computes, or polls, with %s of CPU time in the last %s %s", did, seconds(used), seconds(in), where), true
	case r.process.letter == 'D':
		return fmt.Sprintf("%s: it waits for a disk or another device %s", did, where), false
	}
	return fmt.Sprintf("%s: it sleeps %s", did, where), false
}

// awaited gives the ranks that no message moves, if all others wait, directly or through
// others, for one of them: then they are what the job waits for.
func awaited(rows []rankRow, ended func(rank int) string) (ranks []int) {
	waiting := 0
	for i := range rows {
		r := &rows[i]
		switch {
		case r.cannotMove(ended):
			ranks = append(ranks, r.Rank)
		case r.State == pmi.RowWaiting && ended(r.Rank) == "":
			waiting++
			if !endsWithAway(rows, i, ended) {
				return nil
			}
		}
	}
	if waiting == 0 {
		return nil
	}
	return ranks
}

// endsWithAway follows whom a rank waits for. A wait for no single rank, as in a
// collective call, can only be ended by a rank that does not wait, or through one.
func endsWithAway(rows []rankRow, at int, ended func(rank int) string) bool {
	for range rows {
		r := &rows[at]
		if r.cannotMove(ended) {
			return true
		}
		if r.State != pmi.RowWaiting || ended(r.Rank) != "" {
			return false // it waits for one that has finished
		}
		if r.Wait.Peer < 0 || int(r.Wait.Peer) >= len(rows) {
			return true
		}
		at = int(r.Wait.Peer)
	}
	return false // a cycle
}

// describeAwayRanks gives the lines on ranks that do not wait and on those that are
// stopped. It tells for which of those that do not wait there is a line, and whether one
// of them computes.
func describeAwayRanks(rows []rankRow, s *sample, ended, host func(rank int) string, now time.Time) (lines []string, own map[int]bool, computes bool) {
	own = map[int]bool{}
	for i := range rows {
		r := &rows[i]
		switch {
		case r.away(ended):
			text, busy := s.describeAway(r, host(r.Rank), now)
			computes = computes || busy
			if text != "" {
				own[r.Rank] = true
				lines = append(lines, fmt.Sprintf("rank %d %s", r.Rank, text))
			}
		case r.State == pmi.RowWaiting && ended(r.Rank) == "" && r.process.stopped():
			lines = append(lines, fmt.Sprintf("rank %d is stopped (pid %d on %s); kill -CONT %d lets it go on", r.Rank, r.process.pid, host(r.Rank), r.process.pid))
		}
	}
	if len(lines) > maxStuckLines {
		more := len(lines) - maxStuckLines
		lines = append(lines[:maxStuckLines], fmt.Sprintf("... and %d more such lines", more))
	}
	if len(lines) == 0 {
		return nil, own, computes
	}
	if ranks := awaited(rows, ended); len(ranks) > 0 {
		slices.Sort(ranks)
		lines = append(lines, ranksWith(ranks, "{is what|are what} all others wait for, directly or through other ranks"))
	}
	return lines, own, computes
}
