package launch

// Ranks that do not wait ("away") while others do. The board shows only that they do not
// wait; the kernel shows whether their processes are stopped, sleep or use a core. A rank
// that uses a core computes or polls (Test, Iprobe), which cannot be distinguished from
// outside. That may be correct for any time, so it is reported as information. A rank
// that sleeps or is stopped will not end the wait of the others soon.

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// processState is the kernel's state of a rank's process.
type processState struct {
	pid    int
	letter byte          // R, S, D, T, Z as in ps(1); 0: unknown
	cpu    time.Duration // CPU time used so far
}

func (p processState) stopped() bool { return p.letter == 'T' || p.letter == 't' }

// rankRow is the state of a rank: its board row and counters, and the kernel's state of
// its process.
type rankRow struct {
	pmi.Row
	process  processState
	resident int64  // memory of the process in bytes; 0: unknown
	kernel   string // what its threads do in the kernel: "S ep_poll, S futex_do_wait"; "": unknown
	counted  bool   // counters are known
	counters pmi.Metrics
}

// away reports whether a rank does not wait: it computes, or has not joined.
func (r *rankRow) away(ended func(rank int) string) bool {
	return ended(r.Rank) == "" && (r.State == pmi.RowRunning || r.State == pmi.RowAbsent)
}

// cannotMove reports whether a rank is away, or waits and is stopped, so that no message
// can make it proceed.
func (r *rankRow) cannotMove(ended func(rank int) string) bool {
	return r.away(ended) || ended(r.Rank) == "" && r.State == pmi.RowWaiting && r.process.stopped()
}

// sample holds the rows of an earlier time, to compute the CPU time used since.
type sample struct {
	rows []rankRow
	at   time.Time
}

// idleShare is the share of CPU time up to which a process counts as sleeping: the
// runtime and the timers of a sleeping program use some.
const idleShare = 0.02

// computes reports whether a rank has used a core since the sample, and how much. known
// is false without data.
func (s *sample) computes(r *rankRow, now time.Time) (used, in time.Duration, computes, known bool) {
	if s == nil || r.Rank >= len(s.rows) || r.process.letter == 0 || s.rows[r.Rank].process.pid != r.process.pid {
		return 0, 0, false, false
	}
	was := &s.rows[r.Rank].process
	used, in = r.process.cpu-was.cpu, now.Sub(s.at)
	// A process that is runnable in both samples computes but waits for a core. Runnable
	// in only one may be a timer of a sleeping process.
	return used, in, used.Seconds() > idleShare*in.Seconds() || was.letter == 'R' && r.process.letter == 'R', true
}

// describeAway describes a rank that does not wait; it returns "" if nothing else is
// known.
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
		return fmt.Sprintf("%s: it computes or polls, with %s of CPU time in the last %s %s", did, seconds(used), seconds(in), where), true
	case r.process.letter == 'D':
		return fmt.Sprintf("%s: it waits for a disk or another device %s", did, where), false
	}
	return fmt.Sprintf("%s: it sleeps %s", did, where), false
}

// findAwaited returns the ranks that cannot move, if all others wait for one of them,
// directly or through other ranks: then the whole job waits for them.
func findAwaited(rows []rankRow, ended func(rank int) string) (ranks []int) {
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

// endsWithAway follows the chain of ranks that wait for each other. Only a rank that does
// not wait can end a wait without a single peer, as in a collective call.
func endsWithAway(rows []rankRow, at int, ended func(rank int) string) bool {
	for range rows {
		r := &rows[at]
		if r.cannotMove(ended) {
			return true
		}
		if r.State != pmi.RowWaiting || ended(r.Rank) != "" {
			return false // it waits for a rank that has finished
		}
		if r.Wait.Peer < 0 || int(r.Wait.Peer) >= len(rows) {
			return true
		}
		at = int(r.Wait.Peer)
	}
	return false // a cycle
}

// describeAwayRanks returns the lines about ranks that do not wait or are stopped. own
// holds the ranks that do not wait and have a line; computes reports whether one of them
// computes.
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
	lines = cutLines(lines)
	if len(lines) == 0 {
		return nil, own, computes
	}
	if ranks := findAwaited(rows, ended); len(ranks) > 0 {
		slices.Sort(ranks)
		lines = append(lines, ranksWith(ranks, "{blocks|block} all others, directly or through other ranks"))
	}
	return lines, own, computes
}

// describeKernel returns what the threads of the ranks do in the kernel, a line for all ranks
// with equal ones. A rank that waits for a message sleeps in poll or futex calls; another
// function shows what the machine makes it wait for.
func describeKernel(rows []rankRow, ended func(rank int) string) []string {
	var groups rankGroups
	for i := range rows {
		if r := &rows[i]; r.kernel != "" && ended(r.Rank) == "" && r.State != pmi.RowLeft {
			groups.add(r.kernel, r.Rank)
		}
	}
	return cutLines(groups.lines(func(kernel string, ranks []int) string {
		return fmt.Sprintf("threads of %s in the kernel: %s", ranksNoun(ranks), kernel)
	}))
}
