package launch

// Reports: what the ranks and hosts of a subtree of agents have reached since the last
// report. An agent adds what its own ranks do to the reports of the agents below it, and
// sends one frame when all ranks, or all hosts, of its subtree have reached a state, or
// after reportDelay. So the launcher gets a few frames for a fence of any number of ranks,
// and a rank that others wait for is known within a few times reportDelay. What ends a job
// is not delayed: aborts and failures have frames of their own (frame.go).
//
// The functions are pure, except those of reporter.

import (
	"sync"
	"time"
)

// reportDelay bounds how long an agent holds a report that is not complete. Nobody waits
// for such a report: it serves messages about ranks that are missing.
const reportDelay = 20 * time.Millisecond

// report lists new states. A rank is in each list once, in fenced
// once for each fence.
type report struct {
	ready     spans // hosts whose agents run
	started   []startedRanks
	joined    spans
	fence     int // the number of fences before the one of fenced
	fenced    spans
	finalized spans
	left      spans // exited with status 0, and not between joining and finalizing
	drained   spans // hosts that have sent all output
}

// startedRanks are consecutive ranks with their process IDs.
type startedRanks struct {
	first int
	pids  []int
}

func (r *report) addStarted(rank, pid int) {
	if n := len(r.started); n > 0 {
		if last := &r.started[n-1]; last.first+len(last.pids) == rank {
			last.pids = append(last.pids, pid)
			return
		}
	}
	r.started = append(r.started, startedRanks{rank, []int{pid}})
}

func (r *report) addFenced(nth, rank int) {
	r.fence = nth
	r.fenced.add(span{rank, rank})
}

// merge adds the report of an agent below. Both reports are of one fence: the next one
// begins only when all reports of this one have been sent.
func (r *report) merge(o *report) {
	r.ready.merge(o.ready)
	r.started = append(r.started, o.started...)
	r.joined.merge(o.joined)
	if len(o.fenced) > 0 {
		r.fence = o.fence
	}
	r.fenced.merge(o.fenced)
	r.finalized.merge(o.finalized)
	r.left.merge(o.left)
	r.drained.merge(o.drained)
}

// counts returns the number of hosts or ranks in each list.
func (r *report) counts() (n reportCounts) {
	for _, s := range r.started {
		n[1] += len(s.pids)
	}
	n[0], n[2], n[3] = r.ready.count(), r.joined.count(), r.fenced.count()
	n[4], n[5], n[6] = r.finalized.count(), r.left.count(), r.drained.count()
	return n
}

type reportCounts [7]int

func (r *report) body() []byte {
	var w bodyWriter
	w.spans(r.ready)
	w.number(int64(len(r.started)))
	for _, s := range r.started {
		w.number(int64(s.first))
		w.number(int64(len(s.pids)))
		last := 0
		for _, pid := range s.pids { // mostly consecutive, so the differences are short
			w.number(int64(pid - last))
			last = pid
		}
	}
	w.spans(r.joined)
	w.number(int64(r.fence))
	w.spans(r.fenced)
	w.spans(r.finalized)
	w.spans(r.left)
	w.spans(r.drained)
	return w
}

// readReport decodes a report about ranks and hosts below the given limits.
func readReport(body []byte, ranks, hosts int) (*report, error) {
	r := bodyReader{rest: body}
	out := &report{ready: r.spans(hosts)}
	for range r.number() {
		s := startedRanks{first: int(r.number())}
		n := r.number()
		if n < 0 || n > int64(len(r.rest)) || s.first < 0 || int64(s.first)+n > int64(ranks) {
			r.bad, r.rest = true, nil
		}
		if r.bad {
			return nil, r.err()
		}
		s.pids = make([]int, n)
		last := 0
		for i := range s.pids {
			last += int(r.number())
			s.pids[i] = last
		}
		out.started = append(out.started, s)
	}
	out.joined, out.fence = r.spans(ranks), int(r.number())
	out.fenced, out.finalized, out.left, out.drained = r.spans(ranks), r.spans(ranks), r.spans(ranks), r.spans(hosts)
	return out, r.err()
}

// about calls fn for each list of ranks, then for each list of hosts, and returns the
// first error.
func (r *report) about(ranks, hosts func(spans) error) error {
	for _, s := range r.started {
		if err := ranks(spans{{s.first, s.first + len(s.pids) - 1}}); err != nil && len(s.pids) > 0 {
			return err
		}
	}
	for _, s := range []spans{r.joined, r.fenced, r.finalized, r.left} {
		if err := ranks(s); err != nil {
			return err
		}
	}
	for _, s := range []spans{r.ready, r.drained} {
		if err := hosts(s); err != nil {
			return err
		}
	}
	return nil
}

// reporter collects the reports of an agent and sends them.
type reporter struct {
	send func(body []byte)

	mu    sync.Mutex
	held  report
	total reportCounts // reached so far; ranks in the current fence
	timer *time.Timer  // not nil while held is not empty
	hosts int          // of the subtree
	ranks int          // of the subtree; 0: not known yet
	ended bool
}

// expect adds to the number of ranks of the subtree.
func (p *reporter) expect(ranks int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ranks += ranks
}

// add changes the held report by fn, and sends it if it is complete.
func (p *reporter) add(fn func(*report)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, fence := p.held.counts(), p.held.fence
	fn(&p.held)
	now := p.held.counts()
	if p.held.fence != fence {
		p.total[3] = 0
	}
	complete := false
	for i := range now {
		p.total[i] += now[i] - before[i]
		all := p.ranks
		if i == 0 || i == 6 {
			all = p.hosts
		}
		complete = complete || now[i] != before[i] && p.total[i] == all
	}
	switch {
	case complete:
		p.flushLocked()
	case p.timer == nil && !p.ended:
		p.timer = time.AfterFunc(reportDelay, p.flush)
	}
}

// flush sends the held report. Frames about the same ranks must follow it.
func (p *reporter) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushLocked()
}

func (p *reporter) flushLocked() {
	if p.timer == nil && p.held.counts() == (reportCounts{}) {
		return
	}
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.send(p.held.body())
	p.held = report{fence: p.held.fence}
}

// close sends the held report and stops the timer.
func (p *reporter) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushLocked()
	p.ended = true
}
