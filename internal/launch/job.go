package launch

// The loop that owns a running job. The backend turns the exits of processes and the
// requests of their PMI clients into events; only the loop changes the state of the job.
//
// When a rank fails, the failure is written to the board at once, so that the calls of
// the other ranks return errors. The other ranks have time to exit by themselves
// (grace.go). Then they get SIGTERM, and after half of that time again SIGKILL. The first
// failure is the reported cause and determines the exit status.
//
// A rank has failed if it exits with a nonzero status or by a signal before it has
// finalized; if it exits with status 0 after it has joined and before it has finalized;
// or if it has exited in any way while others wait in a fence. A nonzero status or a signal
// after finalize sets the status of the job but ends no other rank. In a job that survives
// failures (outlive.go) such a signal is a failure as any other.

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

type job struct {
	cfg         *Config
	backend     backend
	server      *pmi.Server
	console     console
	log         *slog.Logger
	events      *mailbox
	scrapes     chan chan []RankMetrics
	lastMetrics lastMetrics
	done        chan struct{} // closed when the loop has ended

	ranks     roster
	starting  *startWatch
	startErr  error // why the job could not be started
	outcome   outcome
	ending    shutdown
	forwarded forwarded
	leavers   earlyLeavers
	outlive   outlive
	unreached unreached
	spawned   spawnedJobs
}

// outcome is how the job ends: by its first failure.
type outcome struct {
	cause  *cause
	status int
}

// cause is the first thing that went wrong.
type cause struct {
	rank int
	text string
}

// fail records the first cause and its status.
func (o *outcome) fail(rank int, why string, code int) {
	if o.cause != nil {
		return
	}
	o.cause = &cause{rank, why}
	o.status = code & 0xff
	if code != 0 && o.status == 0 {
		o.status = 1 // a code of 256 must not look like success
	}
}

// event is a report of a backend or a PMI client: one of the following.
type event struct {
	rank    int
	started bool // with pid
	pid     int
	exited  bool // with end
	end     ending
	pmi     *pmi.Event
	report  *report // what ranks and hosts have reached

	sent   bool   // all agents have been sent the programs and the job
	lost   string // why host was lost
	host   int
	failed error // the job cannot be started
}

func newJob(cfg *Config) *job {
	j := &job{
		cfg:     cfg,
		console: newConsole(&cfg.Output, cfg.Ranks),
		events:  newMailbox(),
		scrapes: make(chan chan []RankMetrics),
		done:    make(chan struct{}),
		ranks:   newRoster(cfg.Ranks),
		ending:  newShutdown(grace{fixed: cfg.Limits.Grace, cores: thisMachine().usable()}),
	}
	j.log = newLog(cfg.Output.Verbose, j.console.stderr)
	j.starting = newStartWatch(cfg, time.Now())
	return j
}

func (j *job) pmiEvent(e pmi.Event) {
	if e.Phase != pmi.PhaseFinalized || e.Unreachable {
		j.post(event{rank: e.Rank, pmi: &e})
	}
}

func (j *job) post(e event) { j.events.put(e) }

// loop runs the job until its last rank has exited.
func (j *job) loop(ctx context.Context) {
	defer close(j.done)
	watch := stuckWatch{after: j.cfg.Limits.Stuck}
	var look <-chan time.Time
	if _, ok := j.backend.pulse(); j.cfg.Limits.Stuck > 0 && ok {
		t := time.NewTicker(stuckInterval(j.cfg.Limits.Stuck))
		defer t.Stop()
		look = t.C
	}
	late := j.starting.ticker()
	defer late.Stop()
	limit := limitTimer(j.cfg.Limits.Job)
	defer limit.Stop()
	defer j.leavers.stop()
	defer j.unreached.stop()
	cancelled := ctx.Done()
	for j.ranks.living > 0 || j.ranks.pending > 0 {
		select {
		case <-j.events.wake:
			j.takeAll()
		case sig := <-j.cfg.Signals:
			if s, ok := sig.(syscall.Signal); ok {
				j.signal(s)
			}
		case <-cancelled:
			cancelled = nil
			j.takeAll()
			j.ranks.pending = 0
			j.outcome.fail(-1, "the job was cancelled: "+context.Cause(ctx).Error(), 128+int(syscall.SIGTERM))
			j.endNow()
		case <-limit.C:
			j.timedOut()
		case answer := <-j.scrapes:
			answer <- j.metrics()
		case <-j.ending.timer.C:
			j.continueEnding(time.Now())
		case now := <-late.C:
			j.checkStartTimeout(now)
		case <-j.unreached.due():
			j.decideUnreached()
		case now := <-j.leavers.ticks():
			j.checkLeft(now)
		case now := <-look:
			if p, ok := j.backend.pulse(); ok {
				j.checkStuck(&watch, p, now)
			}
		}
	}
}

// takeAll handles the pending events.
func (j *job) takeAll() {
	for _, e := range j.events.takeAll() {
		j.take(e)
	}
}

func (j *job) take(e event) {
	j.logEvent(e)
	switch {
	case e.report != nil:
		j.takeReport(e.report)
	case e.started:
		j.recordStart(e.rank, e.pid, time.Now())
	case e.exited:
		j.recordExit(e.rank, e.end)
	case e.sent:
		j.starting.markSent(time.Now())
	case e.lost != "":
		j.hostLost(e.host, e.lost)
	case e.failed != nil:
		j.notStarted(e.failed)
	case e.pmi.Unreachable:
		j.unreached.add(e.rank, e.pmi.Peer, j.decideAfter())
	case e.pmi.Refused != "":
		j.outcome.fail(-1, e.pmi.Refused, 1)
		if !j.ending.asked {
			j.ranks.pending = 0
			j.endNow() // the ranks have not begun, and each would only repeat the sentence
		}
	case e.pmi.Phase == pmi.PhaseAborted:
		text := fmt.Sprintf("aborted the job with code %d", e.pmi.Code)
		if e.pmi.Why != "" {
			text += ": " + e.pmi.Why
		}
		j.failRank(e.rank, text, text, e.pmi.Code)
	case e.pmi.Fence:
		j.starting.markFenced(e.rank, time.Now())
		j.checkFence()
	case e.pmi.Phase == pmi.PhaseJoined:
		j.starting.markJoined(e.rank, time.Now())
		j.outlive.noteTerms(e.pmi.Terms)
	}
}

func (j *job) recordStart(rank, pid int, now time.Time) {
	j.ranks.start(rank, pid)
	j.starting.markStarted(rank, now)
}

// takeReport handles what ranks and hosts have reached.
func (j *job) takeReport(r *report) {
	now := time.Now()
	for host := range r.ready.all() {
		j.starting.markReady(host, now)
	}
	for _, s := range r.started {
		for i, pid := range s.pids {
			j.recordStart(s.first+i, pid, now)
		}
	}
	for rank := range r.joined.all() {
		j.starting.markJoined(rank, now)
	}
	if len(r.fenced) > 0 {
		for rank := range r.fenced.all() {
			j.starting.markFenced(rank, now)
		}
		j.checkFence()
	}
	for rank := range r.left.all() {
		j.recordExit(rank, ending{})
	}
}

// checkFence fails the job if ranks wait in a fence that a rank has left the job without
// entering. The event may be old, so the current state of the fence counts.
func (j *job) checkFence() {
	if j.ranks.ended == 0 || j.server.FenceWaiters() == 0 || j.continues() {
		return // as in every fence of a job that is well: each rank causes an event
	}
	if first := j.outlive.first; first != nil {
		j.outcome.fail(first.rank, first.text, j.outlive.code)
		j.beginEnding()
		return
	}
	if rank, ok := j.ranks.firstEnded(); ok {
		end := j.ranks.all[rank].end
		j.failRank(rank, "exited before a fence that other ranks wait in", end.String(), max(1, end.status()))
	}
}

// notStarted records why the job cannot be started and ends the ranks already started.
func (j *job) notStarted(err error) {
	j.ranks.pending = 0
	j.starting.over = true
	if j.startErr == nil {
		j.startErr = err
		j.endNow()
	}
}

// hostLost marks all ranks of an unreachable host as failed.
func (j *job) hostLost(host int, why string) {
	ranks := j.cfg.layout.ranks[host]
	text := fmt.Sprintf("host %s was lost, with %s: %s", j.cfg.Hosts[host].Name, ranksNoun(ranks), why)
	if j.ranks.pending > 0 {
		j.notStarted(fmt.Errorf("launch: %s", text))
	}
	end := ending{err: fmt.Errorf("host %s was lost", j.cfg.Hosts[host].Name)}
	var lost []int
	for _, rank := range ranks {
		if j.ranks.remove(rank, end) {
			lost = append(lost, rank)
		}
	}
	switch {
	case len(lost) == 0:
	case j.continues():
		j.cfg.replacements.loseHost(j.cfg.Hosts[host].Name)
		j.continueWithout(spansOf(lost...), cause{-1, text}, text, end.String(), 1)
	default:
		j.cfg.replacements.loseHost(j.cfg.Hosts[host].Name)
		j.outcome.fail(-1, text, 1)
		j.announce(spansOf(lost...), end.String())
		j.beginEnding()
	}
}

// checkStartTimeout ends a job whose start takes too long.
func (j *job) checkStartTimeout(now time.Time) {
	if j.starting.over || j.ending.begun {
		return
	}
	if j.server.FencesPassed() > 0 {
		j.starting.over = true
		return
	}
	text, late := j.starting.late(now, j.ranks.hasEnded)
	if !late {
		return
	}
	if j.ranks.pending > 0 {
		j.notStarted(fmt.Errorf("launch: %s", text))
		return
	}
	j.reportWaits(nil, func(bool) string { return "the start takes too long; what the ranks wait for:" })
	j.outcome.fail(-1, text, 1)
	j.endNow()
}

// recordExit decides whether the exit of a process is a failure, by the phase of its PMI
// client.
func (j *job) recordExit(rank int, end ending) {
	if !j.ranks.remove(rank, end) {
		return // already marked as failed with its host
	}
	failed := end.status() != 0
	phase := j.server.Phase(rank)
	switch {
	case phase == pmi.PhaseAborted: // the abort request was reported already
	case phase == pmi.PhaseFinalized && end.signal != 0 && j.continues():
		j.recordFailure(rank, "after Finalize: "+end.explain(), end.String(), end.status())
	case phase == pmi.PhaseFinalized:
		j.outlive.left++
		if failed && j.outcome.status == 0 && j.outcome.cause == nil {
			j.outcome.fail(rank, "after Finalize: "+end.explain(), end.status())
		}
	case failed:
		j.recordFailure(rank, end.explain(), end.String(), end.status())
	case phase == pmi.PhaseJoined:
		j.recordEarlyExit(rank)
	case j.server.FenceWaiters() > 0:
		j.failRank(rank, "exited with status 0 without joining the job, while other ranks wait for it", "exited without joining the job", 1)
	}
}

// failRank marks a rank as failed on all boards and starts ending the job.
func (j *job) failRank(rank int, why, status string, code int) {
	j.announce(spansOf(rank), status)
	j.outcome.fail(rank, why, code)
	j.beginEnding()
}

// announce marks ranks of one host as failed on all boards. When the job is being ended,
// all ranks have been told of a failure and fail one after the other because of it; to
// announce each to all others would take the square of their number.
func (j *job) announce(ranks spans, status string) {
	j.cfg.replacements.record(j.cfg.replacementName, ranks, j.backend.host(ranks[0].first), status)
	if !j.ending.begun {
		j.backend.markDead(ranks, j.backend.host(ranks[0].first), status)
	}
}

// report prints the cause as the last lines of all output, where users look first.
func (j *job) report() {
	if lines := j.console.folds.lines(); len(lines) > 0 {
		j.notice(lines...)
	}
	if j.outcome.cause == nil {
		j.reportLeft()
		return
	}
	j.notice(append([]string{j.causeText()}, j.ending.report(j.cfg.Ranks, j.server.FencesPassed() > 0)...)...)
}

func (j *job) causeText() string {
	c := j.outcome.cause
	if c.rank < 0 {
		return c.text
	}
	r := &j.ranks.all[c.rank]
	if r.end.signal != 0 && r.end.signal == j.forwarded.last {
		return "the job was ended by " + signalName(j.forwarded.last)
	}
	return fmt.Sprintf("rank %d (pid %d on %s): %s", c.rank, r.pid, j.backend.host(c.rank), c.text)
}

func (j *job) result() Result {
	res := Result{Status: j.outcome.status, Gets: j.server.Counts().Gets}
	if j.outcome.cause != nil {
		res.Cause = j.causeText()
	} else if status, cause := j.spawned.failure(); status != 0 && res.Status == 0 {
		res.Status, res.Cause = status, cause
	}
	return res
}

func (j *job) notice(lines ...string) { j.console.notice(lines...) }
