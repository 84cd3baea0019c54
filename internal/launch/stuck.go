package launch

// Who waits for whom. The board has a row per rank; ranks with the same row
// become one line, and the single peers that they name make a graph with at
// most one edge from each rank, in which cycles are easy to find.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// pulse is what reports whether ranks move.
type pulse struct {
	progress uint64 // sum over all ranks
	waiting  int    // ranks that sleep in a call
	moving   bool   // some rank computes, or says nothing of itself
	learnt   int    // ranks that know of a death
}

func (p *pulse) add(o pulse) {
	p.progress += o.progress
	p.waiting += o.waiting
	p.moving = p.moving || o.moving
	p.learnt += o.learnt
}

// pulseOf reads it off rows. alive reports which processes still run.
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

// stuckWatch finds out that nothing moves.
type stuckWatch struct {
	after    time.Duration
	progress uint64    // when last looked at
	moved    time.Time // when something last moved
	looked   time.Time
	told     time.Time     // when that was last reported, or moved
	period   time.Duration // until the next report
	earlier  *sample       // of about half a period before a report
}

// stuckStep is what to do after a look.
type stuckStep uint8

const (
	stuckNot  stuckStep = iota
	stuckSoon           // keep a sample of the ranks
	stuckTell           // report
)

// look says how long nothing has moved, and whether that is long enough to be told. Ranks
// that do not wait may compute; who reports finds out.
func (w *stuckWatch) look(p pulse, now time.Time) (time.Duration, stuckStep) {
	// A launcher that was stopped, with its ranks, has seen nothing of that time.
	slept := !w.looked.IsZero() && now.Sub(w.looked) > w.after+time.Second
	w.looked = now
	if w.moved.IsZero() || slept || p.waiting == 0 || p.progress != w.progress {
		w.progress, w.moved, w.told, w.period, w.earlier = p.progress, now, now, w.after, nil
		return 0, stuckNot
	}
	switch since := now.Sub(w.told); {
	case since >= w.period:
		w.told = now // told once in each period
		return now.Sub(w.moved), stuckTell
	case since >= w.period/2 && p.moving && (w.earlier == nil || w.earlier.at.Before(w.told)):
		return 0, stuckSoon
	}
	return 0, stuckNot
}

// patient makes the next report come later: a computation takes as long as it takes.
func (w *stuckWatch) patient() { w.period *= 2 }

// lookEvery is how often that is done.
func lookEvery(after time.Duration) time.Duration {
	return min(time.Second, max(time.Millisecond, after/4))
}

// maxStuckLines keeps the report of a large job readable.
const maxStuckLines = 40

// describeWaits gives the report, line by line, without ranks for which there is a line
// of their own. ended reports how a rank's process ended, or "" while it runs.
func describeWaits(rows []rankRow, own map[int]bool, ended func(rank int) string, now time.Time) []string {
	type line struct {
		ranks []int
		since int64 // earliest
		wait  bool
		text  string
	}
	var lines []*line
	at := map[string]*line{}
	for _, r := range rows {
		if own[r.Rank] {
			continue
		}
		text, since, wait := describeRow(r.Row, ended(r.Rank))
		l := at[text]
		if l == nil {
			l = &line{since: since, wait: wait, text: text}
			at[text] = l
			lines = append(lines, l)
		}
		l.ranks = append(l.ranks, r.Rank)
		l.since = min(l.since, since)
	}
	var out []string
	for i, l := range lines {
		if i == maxStuckLines && len(lines) > maxStuckLines+1 {
			out = append(out, fmt.Sprintf("... and %d more such lines", len(lines)-i))
			break
		}
		s := ranksWith(l.ranks, l.text)
		if l.wait {
			s += " for " + seconds(now.Sub(time.Unix(0, l.since)))
		}
		out = append(out, s)
	}
	for _, c := range waitCycles(rows, ended) {
		out = append(out, "cycle: "+joinRanks(c, " waits for "))
	}
	for _, r := range rows {
		p := int(r.Wait.Peer)
		if r.State == pmi.RowWaiting && ended(r.Rank) == "" && p >= 0 && p < len(rows) {
			if how := ended(p); how != "" {
				out = append(out, fmt.Sprintf("rank %d waits for rank %d, which has ended (%s)", r.Rank, p, how))
			} else if rows[p].State == pmi.RowLeft {
				out = append(out, fmt.Sprintf("rank %d waits for rank %d, which has finished", r.Rank, p))
			}
		}
	}
	return out
}

// describeRow gives the predicate of a line, with the verb of one rank and of
// several between bars: "wait|s in Recv".
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
	return b.String(), w.Since, true
}

// ranksWith puts ranks before a predicate, in the right number.
func ranksWith(ranks []int, text string) string {
	subject, form := "rank ", 0
	if len(ranks) > 1 {
		subject, form = "ranks ", 1
	}
	var b strings.Builder
	b.WriteString(subject + pmi.Ranks(ranks) + " ")
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

// waitCycles finds ranks that wait for each other in a circle. Each cycle
// begins with its lowest rank and ends with it again.
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

func seconds(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return strconv.Itoa(int(d.Seconds())) + " s"
}
