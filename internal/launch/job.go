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
	cfg            *Config
	backend        backend
	server         *pmi.Server
	stdout, stderr *sink
	folds          folds
	files          *outputFiles // nil: the output goes to stdout and stderr
	log            *slog.Logger
	events         *mailbox
	scrapes        chan chan []RankMetrics
	lastMetrics    lastMetrics
	done           chan struct{} // closed when the loop has ended

	ranks    []rankState
	pending  int // ranks not started yet
	living   int
	startErr error // why the job could not be started
	cause    *cause
	status   int // of the job, once a rank has failed
	killed   int // ranks killed by SIGKILL

	leavers     earlyLeavers
	outlive     outlive
	unreached   unreached
	starting    *startWatch
	ending      bool
	grace       grace
	ended       int         // ranks that exited since the first failure
	survivors   int         // ranks alive at the first failure
	noticed     int         // of these, how many had noticed it when SIGTERM was sent
	endTimer    *time.Timer // the next step of ending the job, or the next check
	asked       bool        // SIGTERM was sent
	interrupted time.Time   // when the first SIGINT came
	lastQuit    time.Time
	passedOn    syscall.Signal // the last signal passed on
}

type rankState struct {
	pid     int
	started bool
	alive   bool
	end     ending
}

// cause is the first thing that went wrong.
type cause struct {
	rank int
	text string
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
	both := new(screen)
	j := &job{
		cfg:     cfg,
		stdout:  newSink(both, cfg.Output.Stdout),
		stderr:  newSink(both, cfg.Output.Stderr),
		events:  newMailbox(),
		scrapes: make(chan chan []RankMetrics),
		done:    make(chan struct{}),
		ranks:   make([]rankState, cfg.Ranks),
	}
	j.log = newLog(cfg.Output.Verbose, j.stderr)
	j.pending = cfg.Ranks
	j.grace = grace{fixed: cfg.Limits.Grace, cores: thisMachine().usable()}
	j.starting = newStartWatch(cfg, time.Now())
	j.endTimer = time.NewTimer(time.Hour)
	j.endTimer.Stop()
	return j
}

// lines returns the function that writes a rank's lines.
func (j *job) lines(rank int, isStderr bool) func(text []byte) {
	if j.files != nil {
		return j.files.writer(rank, isStderr)
	}
	var label []byte
	if j.cfg.Output.labels(j.cfg.Ranks) {
		label = rankLabel(rank, j.cfg.Ranks)
	}
	if isStderr {
		write := j.stderr.labelled(label)
		if label == nil || j.cfg.Output.Quiet {
			return write
		}
		return func(text []byte) { write(j.folds.rest(rank, text)) }
	}
	return j.stdout.labelled(label)
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
	for j.living > 0 || j.pending > 0 {
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
			j.pending = 0
			j.fail(-1, "the job was cancelled: "+context.Cause(ctx).Error(), 128+int(syscall.SIGTERM))
			j.endNow()
		case <-limit.C:
			j.timedOut()
		case answer := <-j.scrapes:
			answer <- j.metrics()
		case <-j.endTimer.C:
			j.endTimerFired(time.Now())
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
		j.started(e.rank, e.pid, time.Now())
	case e.exited:
		j.exited(e.rank, e.end)
	case e.sent:
		j.starting.sent(time.Now())
	case e.lost != "":
		j.hostLost(e.host, e.lost)
	case e.failed != nil:
		j.notStarted(e.failed)
	case e.pmi.Unreachable:
		j.unreached.add(e.rank, e.pmi.Peer, j.decideAfter())
	case e.pmi.Refused != "":
		j.fail(-1, e.pmi.Refused, 1)
		if !j.asked {
			j.pending = 0
			j.endNow() // the ranks have not begun, and each would only repeat the sentence
		}
	case e.pmi.Phase == pmi.PhaseAborted:
		text := fmt.Sprintf("aborted the job with code %d", e.pmi.Code)
		if e.pmi.Why != "" {
			text += ": " + e.pmi.Why
		}
		j.died(e.rank, text, text, e.pmi.Code)
	case e.pmi.Fence:
		j.starting.fenced(e.rank, time.Now())
		j.checkFence()
	case e.pmi.Phase == pmi.PhaseJoined:
		j.starting.joined(e.rank, time.Now())
		j.outlive.declared(e.pmi.Terms)
	}
}

func (j *job) started(rank, pid int, now time.Time) {
	r := &j.ranks[rank]
	r.started, r.alive, r.pid = true, true, pid
	j.living++
	j.pending = max(0, j.pending-1)
	j.starting.started(rank, now)
}

// takeReport handles what ranks and hosts have reached.
func (j *job) takeReport(r *report) {
	now := time.Now()
	for host := range r.ready.all() {
		j.starting.ready(host, now)
	}
	for _, s := range r.started {
		for i, pid := range s.pids {
			j.started(s.first+i, pid, now)
		}
	}
	for rank := range r.joined.all() {
		j.starting.joined(rank, now)
	}
	if len(r.fenced) > 0 {
		for rank := range r.fenced.all() {
			j.starting.fenced(rank, now)
		}
		j.checkFence()
	}
	for rank := range r.left.all() {
		j.exited(rank, ending{})
	}
}

// checkFence fails the job if ranks wait in a fence that a rank has left the job without
// entering. The event may be old, so the current state of the fence counts.
func (j *job) checkFence() {
	if j.ended == 0 || j.server.Fenced() == 0 || j.continues() {
		return // as in every fence of a job that is well: each rank causes an event
	}
	if first := j.outlive.first; first != nil {
		j.fail(first.rank, first.text, j.outlive.code)
		j.beginEnding()
		return
	}
	for rank := range j.ranks {
		if r := &j.ranks[rank]; r.started && !r.alive {
			j.died(rank, "exited before a fence that other ranks wait in", r.end.String(), max(1, r.end.status()))
			return
		}
	}
}

// notStarted records why the job cannot be started and ends the ranks already started.
func (j *job) notStarted(err error) {
	j.pending = 0
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
	if j.pending > 0 {
		j.notStarted(fmt.Errorf("launch: %s", text))
	}
	var lost []int
	for _, rank := range ranks {
		r := &j.ranks[rank]
		if !r.alive {
			continue
		}
		r.alive, r.end = false, ending{err: fmt.Errorf("host %s was lost", j.cfg.Hosts[host].Name)}
		j.living--
		j.ended++
		lost = append(lost, rank)
	}
	switch {
	case len(lost) == 0:
	case j.continues():
		j.continueWithout(spansOf(lost...), cause{-1, text}, text, j.ranks[lost[0]].end.String(), 1)
	default:
		j.fail(-1, text, 1)
		j.announce(spansOf(lost...), j.ranks[lost[0]].end.String())
		j.beginEnding()
	}
}

// checkStartTimeout ends a job whose start takes too long.
func (j *job) checkStartTimeout(now time.Time) {
	if j.starting.over || j.ending {
		return
	}
	if j.server.Passed() > 0 {
		j.starting.over = true
		return
	}
	text, late := j.starting.late(now, func(rank int) bool { return j.ranks[rank].started && !j.ranks[rank].alive })
	if !late {
		return
	}
	if j.pending > 0 {
		j.notStarted(fmt.Errorf("launch: %s", text))
		return
	}
	j.reportWaits(nil, func(bool) string { return "the start takes too long; what the ranks wait for:" })
	j.fail(-1, text, 1)
	j.endNow()
}

// exited decides whether the exit of a process is a failure, by the phase of its PMI
// client.
func (j *job) exited(rank int, end ending) {
	r := &j.ranks[rank]
	if !r.alive {
		return // already marked as failed with its host
	}
	r.alive, r.end = false, end
	j.living--
	j.ended++
	failed := end.status() != 0
	phase := j.server.Phase(rank)
	switch {
	case phase == pmi.PhaseAborted: // the abort request was reported already
	case phase == pmi.PhaseFinalized && end.signal != 0 && j.continues():
		j.lost(rank, "after Finalize: "+end.explained(), end.String(), end.status())
	case phase == pmi.PhaseFinalized:
		j.outlive.left++
		if failed && j.status == 0 && j.cause == nil {
			j.fail(rank, "after Finalize: "+end.explained(), end.status())
		}
	case failed:
		j.lost(rank, end.explained(), end.String(), end.status())
	case phase == pmi.PhaseJoined:
		j.left(rank)
	case j.server.Fenced() > 0:
		j.died(rank, "exited with status 0 without joining the job, while other ranks wait for it", "exited without joining the job", 1)
	}
}

// died marks a rank as failed on all boards and starts ending the job.
func (j *job) died(rank int, why, status string, code int) {
	j.announce(spansOf(rank), status)
	j.fail(rank, why, code)
	j.beginEnding()
}

// announce marks ranks of one host as failed on all boards. When the job is being ended,
// all ranks have been told of a failure and fail one after the other because of it; to
// announce each to all others would take the square of their number.
func (j *job) announce(ranks spans, status string) {
	if !j.ending {
		j.backend.markDead(ranks, j.backend.host(ranks[0].first), status)
	}
}

// beginEnding gives the remaining ranks the time to exit by themselves.
func (j *job) beginEnding() {
	if !j.ending {
		j.ending = true
		j.ended, j.survivors = 0, j.living
		j.grace.begin(time.Now(), j.living)
		j.endTimer.Reset(graceLook)
	}
}

// endTimerFired ends the remaining ranks, unless they are still exiting by themselves. It
// handles pending events first: the ranks may also have kept this process off its core.
func (j *job) endTimerFired(now time.Time) {
	if !j.asked && j.survivors > 0 {
		j.takeAll()
		if left := j.grace.left(now, j.living, j.ended+j.backend.noticed()); left > 0 {
			j.endTimer.Reset(min(left, graceLook))
			return
		}
	}
	j.endNow()
}

// fail records the first cause and its status.
func (j *job) fail(rank int, why string, code int) {
	if j.cause != nil {
		return
	}
	j.cause = &cause{rank, why}
	j.status = code & 0xff
	if code != 0 && j.status == 0 {
		j.status = 1 // a code of 256 must not look like success
	}
}

// endNow takes the next step to end the job: first SIGTERM, then SIGKILL.
func (j *job) endNow() {
	j.ending = true
	if !j.asked {
		j.asked = true
		j.noticed = j.backend.noticed()
		j.log.Info("SIGTERM to the remaining ranks", "ranks", j.living)
		j.backend.signalAll(syscall.SIGTERM)
		j.endTimer.Reset(j.grace.quiet(j.living) / 2)
		return
	}
	if j.killed == 0 {
		j.killed = j.living
	}
	j.log.Info("SIGKILL to the remaining ranks", "ranks", j.living)
	j.backend.signalAll(syscall.SIGKILL)
	j.endTimer.Reset(time.Second) // repeat it for a process that is blocked in the kernel
}

// signal forwards a signal to the ranks. The second SIGINT kills them, because a program
// may handle the first. SIGQUIT prints the report; only a second one in a row is
// forwarded, which makes Go programs print their stacks.
func (j *job) signal(sig syscall.Signal) {
	j.takeAll()
	if j.pending > 0 && (sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP) {
		j.pending = 0
		j.fail(-1, "the start was interrupted by "+signalName(sig), 128+int(sig))
		j.endNow()
		return
	}
	switch sig {
	case syscall.SIGINT:
		if j.interrupted.IsZero() {
			j.interrupted = time.Now()
		} else if time.Since(j.interrupted) > sameKeystroke {
			j.fail(-1, "interrupted twice", 128+int(sig))
			j.asked = true
			j.endNow()
			return
		}
	case syscall.SIGQUIT:
		if time.Since(j.lastQuit) > 2*time.Second {
			j.lastQuit = time.Now()
			j.reportWaits(nil, func(bool) string {
				return "which rank waits for which (a second SIGQUIT within 2 s is forwarded to the ranks):"
			})
			return
		}
	case sigTstp:
		// Stop together with the ranks. SIGCONT is forwarded to them when it arrives;
		// it cannot be sent from here, because this thread may run on for a moment.
		j.backend.signalAll(sigStop)
		stopSelf()
		return
	}
	j.passedOn = sig
	j.log.Info("signal forwarded", "signal", signalName(sig))
	j.backend.signalAll(sig)
}

// sameKeystroke is the time within which two SIGINT count as one: commands such as
// timeout send it to the launcher and then to its process group.
const sameKeystroke = 100 * time.Millisecond

// report prints the cause as the last lines of all output, where users look first.
func (j *job) report() {
	if lines := j.folds.lines(); len(lines) > 0 {
		j.notice(lines...)
	}
	if j.cause == nil {
		j.reportLeft()
		return
	}
	lines := []string{j.causeText()}
	if j.killed > 0 {
		lines = append(lines, fmt.Sprintf("killed ranks that did not exit by themselves: %d of %d", j.killed, j.cfg.Ranks))
	}
	if j.asked && j.survivors > 0 && j.noticed < j.survivors && j.server.Passed() > 0 {
		lines = append(lines, fmt.Sprintf("%d of the %d other ranks had noticed the failure when they got SIGTERM; --grace gives them more time", j.noticed, j.survivors))
	}
	j.notice(lines...)
}

func (j *job) causeText() string {
	c := j.cause
	if c.rank < 0 {
		return c.text
	}
	r := &j.ranks[c.rank]
	if r.end.signal != 0 && r.end.signal == j.passedOn {
		return "the job was ended by " + signalName(j.passedOn)
	}
	return fmt.Sprintf("rank %d (pid %d on %s): %s", c.rank, r.pid, j.backend.host(c.rank), c.text)
}

func (j *job) result() Result {
	res := Result{Status: j.status, Gets: j.server.Counts().Gets}
	if j.cause != nil {
		res.Cause = j.causeText()
	}
	return res
}

// notice prints lines of the launcher itself.
func (j *job) notice(lines ...string) {
	if j.cfg.Output.Quiet {
		return
	}
	var text []byte
	for _, l := range lines {
		text = append(append(text, l...), '\n')
	}
	j.stderr.write([]byte("muster: "), text)
}
