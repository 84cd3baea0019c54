package launch

// The report of a stuck job: which rank waits for which. The board has a row per rank.
// Ranks with equal rows become one line. The peers in the rows form a graph with at most
// one edge from each rank, in which cycles are easy to find.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/pmi"
)

// pulse summarizes the progress of ranks.
type pulse struct {
	progress uint64 // sum over all ranks
	waiting  int    // ranks that block in a call
	moving   bool   // some rank is not waiting, or its state is unknown
	noticed  int    // ranks that have noticed a failure
}

func (p *pulse) add(o pulse) {
	p.progress += o.progress
	p.waiting += o.waiting
	p.moving = p.moving || o.moving
	p.noticed += o.noticed
}

// pulseOf computes the pulse from rows. alive reports whether a process still runs.
func pulseOf(rows []pmi.Row, alive func(rank int) bool) (p pulse) {
	for i := range rows {
		r := &rows[i]
		p.progress += r.Progress
		switch {
		case !alive(r.Rank) || r.State == pmi.RowLeft:
		case r.State == pmi.RowWaiting:
			p.waiting++
		default:
			p.moving = true
		}
	}
	return p
}

// stuckWatch detects that there is no progress.
type stuckWatch struct {
	after    time.Duration
	progress uint64        // at the last check
	moved    time.Time     // time of the last progress
	looked   time.Time     // time of the last check
	reported time.Time     // when it was last reported, or moved
	period   time.Duration // until the next report
	earlier  *sample       // taken about half a period before a report
}

// stuckStep is the action after a check.
type stuckStep uint8

const (
	stuckNot    stuckStep = iota
	stuckSoon             // keep a sample of the ranks
	stuckReport           // report
)

// look returns how long there has been no progress, and whether to report it. Ranks that
// do not wait may compute; the report distinguishes them.
func (w *stuckWatch) look(p pulse, now time.Time) (time.Duration, stuckStep) {
	// The time during which the launcher was stopped with its ranks does not count.
	slept := !w.looked.IsZero() && now.Sub(w.looked) > w.after+time.Second
	w.looked = now
	if w.moved.IsZero() || slept || p.waiting == 0 || p.progress != w.progress {
		w.progress, w.moved, w.reported, w.period, w.earlier = p.progress, now, now, w.after, nil
		return 0, stuckNot
	}
	switch since := now.Sub(w.reported); {
	case since >= w.period:
		w.reported = now // once per period
		return now.Sub(w.moved), stuckReport
	case since >= w.period/2 && p.moving && (w.earlier == nil || w.earlier.at.Before(w.reported)):
		return 0, stuckSoon
	}
	return 0, stuckNot
}

// backOff doubles the time until the next report: a computation may take long.
func (w *stuckWatch) backOff() { w.period *= 2 }

// checkStuck prints a report if there has been no progress for long.
func (j *job) checkStuck(watch *stuckWatch, p pulse, now time.Time) {
	still, step := watch.look(p, now)
	switch step {
	case stuckSoon:
		rows, _ := j.backend.rows(false)
		watch.earlier = &sample{rows, time.Now()}
	case stuckReport:
		if j.ending.begun && j.cfg.Limits.EndStuck {
			return
		}
		computes := j.reportWaits(watch.earlier, func(computes bool) string {
			if computes {
				return fmt.Sprintf("for %s some ranks have waited while others compute, which is normal in a long computation; which rank waits for which:", seconds(still))
			}
			return fmt.Sprintf("no progress for %s; which rank waits for which:", seconds(still))
		})
		switch {
		case computes:
			watch.backOff()
		case j.cfg.Limits.EndStuck && !j.ending.begun:
			j.outcome.fail(-1, fmt.Sprintf("the job was ended because there was no progress for %s (--stuck-after %v --on-stuck end)", seconds(still), j.cfg.Limits.Stuck), TimeoutStatus)
			j.endNow()
		}
	}
}

// reportWaits prints which rank waits for which, and reports whether some rank computes.
// head returns the first line.
func (j *job) reportWaits(earlier *sample, head func(computes bool) string) (computes bool) {
	ended := func(rank int) string {
		if r := &j.ranks.all[rank]; r.started && !r.alive {
			return r.end.String()
		}
		return ""
	}
	rows, silent := j.backend.rows(true)
	now := time.Now()
	away, own, computes := describeAwayRanks(rows, earlier, ended, j.backend.host, now)
	lines := []string{head(computes)}
	if len(rows) == 0 {
		lines = append(lines, "  unknown: this system has no board")
	}
	for _, l := range slices.Concat(describeWaits(rows, own, ended, now), away, describeKernel(rows, ended)) {
		lines = append(lines, "  "+l)
	}
	if len(silent) > 0 {
		lines = append(lines, "  no answer from "+shortList(silent)+": the lines about their ranks may be outdated")
	}
	j.notice(lines...)
	return computes
}

// stuckInterval returns the interval of the checks.
func stuckInterval(after time.Duration) time.Duration {
	return min(time.Second, max(time.Millisecond, after/4))
}

// maxStuckLines keeps the report of a large job readable.
const maxStuckLines = 40

// describeWaits returns the lines of the report, without the ranks in own, which have
// separate lines. ended returns how a rank's process ended, or "" while it runs.
func describeWaits(rows []rankRow, own map[int]bool, ended func(rank int) string, now time.Time) []string {
	var groups rankGroups
	since := map[string]int64{} // the earliest
	for _, r := range rows {
		if own[r.Rank] {
			continue
		}
		text, began, waits := describeRow(r.Row, ended(r.Rank))
		groups.add(text, r.Rank)
		if first, known := since[text]; waits && (!known || began < first) {
			since[text] = began
		}
	}
	out := cutLines(groups.lines(func(text string, ranks []int) string {
		s := ranksWith(ranks, text)
		if began, waits := since[text]; waits {
			s += " for " + seconds(now.Sub(time.Unix(0, began)))
		}
		return s
	}))
	out = append(out, differentCollectives(rows, ended)...)
	for _, c := range waitCycles(rows, ended) {
		out = append(out, "cycle: "+joinRanks(c, " waits for "))
	}
	return append(out, waitsForEnded(rows, ended)...)
}

// waitsForEnded returns the lines about ranks that wait for one that has ended, or for one that
// is in Finalize: that sends nothing more to the program.
func waitsForEnded(rows []rankRow, ended func(rank int) string) []string {
	var groups rankGroups
	for i := range rows {
		r := &rows[i]
		p := int(r.Wait.Peer)
		if r.State != pmi.RowWaiting || ended(r.Rank) != "" || p < 0 || p >= len(rows) {
			continue
		}
		if how := ended(p); how != "" {
			groups.add(fmt.Sprintf("{waits|wait} for rank %d, which has ended (%s)", p, how), r.Rank)
		} else if rows[p].State == pmi.RowLeft {
			groups.add(fmt.Sprintf("{waits|wait} for rank %d, which has finished", p), r.Rank)
		} else if inFinalize(&rows[p].Row) && !inFinalize(&r.Row) {
			groups.add(fmt.Sprintf("{waits|wait} in %s for rank %d, which has left in Finalize", r.Wait.Op, p), r.Rank)
		}
	}
	return groups.lines(func(text string, ranks []int) string { return ranksWith(ranks, text) })
}

// rankGroups are the ranks with equal texts, in the order in which the texts came.
type rankGroups struct {
	texts []string
	ranks map[string][]int
}

func (g *rankGroups) add(text string, rank int) {
	if g.ranks == nil {
		g.ranks = map[string][]int{}
	}
	if g.ranks[text] == nil {
		g.texts = append(g.texts, text)
	}
	g.ranks[text] = append(g.ranks[text], rank)
}

// lines returns the line of each text.
func (g *rankGroups) lines(line func(text string, ranks []int) string) (lines []string) {
	for _, text := range g.texts {
		lines = append(lines, line(text, g.ranks[text]))
	}
	return lines
}

// cutLines replaces the last of too many lines by their number.
func cutLines(lines []string) []string {
	if more := len(lines) - maxStuckLines; more > 1 {
		return append(lines[:maxStuckLines], fmt.Sprintf("... and %d more such lines", more))
	}
	return lines
}

// inFinalize reports whether a rank waits in Finalize.
func inFinalize(r *pmi.Row) bool {
	name, _, _ := strings.Cut(r.Wait.Op, " ")
	return r.State == pmi.RowWaiting && name == "Finalize"
}

// differentCollectives draws the conclusion from ranks that wait in different collective
// calls on one communicator: no such wait can end.
func differentCollectives(rows []rankRow, ended func(rank int) string) (lines []string) {
	var contexts []uint32
	calls := map[uint32]*rankGroups{}
	for _, r := range rows {
		if r.State != pmi.RowWaiting || ended(r.Rank) != "" || !isCollective(r.Wait.Op) {
			continue
		}
		ctx := r.Wait.Context
		if calls[ctx] == nil {
			contexts = append(contexts, ctx)
			calls[ctx] = new(rankGroups)
		}
		calls[ctx].add(r.Wait.Op, r.Rank)
	}
	for _, ctx := range contexts {
		names := map[string]bool{}
		parts := calls[ctx].lines(func(call string, ranks []int) string {
			name, _, _ := strings.Cut(call, " ")
			form := "{rank|ranks} " + pmi.Ranks(ranks)
			if len(names) == 0 {
				form += " {is|are}"
			}
			names[name] = true
			return pluralOf(form, len(ranks)) + " in " + call
		})
		if len(names) > 1 {
			lines = append(lines, strings.Join(parts, ", ")+": different collectives")
		}
	}
	return lines
}

// isCollective reports whether the name of a call is that of a blocking collective.
func isCollective(call string) bool {
	name, _, _ := strings.Cut(call, " ")
	_, form, ok := coll.KindOfFunction(name)
	return ok && form == coll.Blocking
}

// describeRow returns the predicate of a line, with the singular and plural forms of the
// verb in braces: "{waits|wait} in Recv".
func describeRow(r pmi.Row, ended string) (text string, since int64, wait bool) {
	switch {
	case ended != "":
		return "{has|have} ended (" + ended + ")", 0, false
	case r.State == pmi.RowAbsent:
		return "{has|have} not joined the job", 0, false
	case r.State == pmi.RowLeft:
		return "{has|have} finished", 0, false
	case r.State == pmi.RowRunning:
		return "{is|are} not waiting", 0, false
	}
	w := r.Wait
	var b strings.Builder
	b.WriteString("{waits|wait} in " + w.Op)
	direction := " from "
	if w.Sending {
		direction = " to "
	}
	switch {
	case w.Peer == pmi.PeerAny:
		b.WriteString(direction + "any rank")
	case w.Peer >= 0:
		b.WriteString(direction + strconv.Itoa(int(w.Peer)))
	}
	switch {
	case w.Tag == pmi.TagAny:
		b.WriteString(" any tag")
	case w.Tag >= 0:
		b.WriteString(" tag " + strconv.Itoa(int(w.Tag)))
	}
	if w.Comm != "" {
		b.WriteString(" on comm " + w.Comm)
	}
	if from := w.Other.Source(); from >= 0 {
		fmt.Fprintf(&b, " (a message from %d with tag %d was not received)", from, w.Other.Tag())
	}
	return b.String(), w.Since, true
}

// ranksWith returns a sentence of ranks and a predicate in singular or plural.
func ranksWith(ranks []int, text string) string {
	subject, form := "rank ", 0
	if len(ranks) > 1 {
		subject, form = "ranks ", 1
	}
	return subject + pmi.Ranks(ranks) + " " + pluralOf(text, form+1)
}

// pluralOf selects the singular or plural forms in braces.
func pluralOf(text string, n int) string {
	form := 0
	if n > 1 {
		form = 1
	}
	var b strings.Builder
	for text != "" {
		before, rest, _ := strings.Cut(text, "{")
		verb, after, _ := strings.Cut(rest, "}")
		b.WriteString(before)
		if forms := strings.Split(verb, "|"); len(forms) == 2 {
			b.WriteString(forms[form])
		}
		text = after
	}
	return b.String()
}

// waitCycles returns the cycles of ranks that wait for each other. Each cycle starts and
// ends with its lowest rank.
func waitCycles(rows []rankRow, ended func(rank int) string) (cycles [][]int) {
	next := make([]int, len(rows))
	for i, r := range rows {
		next[i] = -1
		if p := int(r.Wait.Peer); r.State == pmi.RowWaiting && ended(r.Rank) == "" && p >= 0 && p < len(rows) {
			next[i] = p
		}
	}
	seen := make([]int, len(rows)) // 1 + the rank whose walk came here first
	for start := range rows {
		at := start
		for at >= 0 && seen[at] == 0 {
			seen[at] = start + 1
			at = next[at]
		}
		if at < 0 || seen[at] != start+1 {
			continue // the walk ended, or joined an older one
		}
		cycle := []int{at}
		for r := next[at]; r != at; r = next[r] {
			cycle = append(cycle, r)
		}
		lowest := slices.Index(cycle, slices.Min(cycle))
		cycle = append(cycle[lowest:len(cycle):len(cycle)], cycle[:lowest]...)
		cycles = append(cycles, append(cycle, cycle[0]))
	}
	return cycles
}

func joinRanks(ranks []int, sep string) string {
	const most = 32
	words := make([]string, 0, most)
	for i, r := range ranks {
		if i == most-2 && len(ranks) > most {
			words = append(words, "...", strconv.Itoa(ranks[len(ranks)-1]))
			break
		}
		words = append(words, strconv.Itoa(r))
	}
	return strings.Join(words, sep)
}

// DescribeBoard returns the lines of the report for ranks that are goroutines of this
// process.
func DescribeBoard(b *pmi.Board, now time.Time) []string {
	var rows []rankRow
	for _, r := range b.Snapshot(nil) {
		rows = append(rows, rankRow{Row: r})
	}
	return describeWaits(rows, nil, func(int) string { return "" }, now)
}

func seconds(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return strconv.Itoa(int(d.Seconds())) + " s"
}
