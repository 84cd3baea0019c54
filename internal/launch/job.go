package launch

// The loop that owns a running job. Goroutines per rank turn the end of a
// process and the requests of its PMI client into events; the loop alone
// changes the state of the job.
//
// When a rank dies, its death is written on the board at once, so that the calls
// of the others return errors. They have time to leave by themselves (grace.go),
// are then asked (SIGTERM) and after half of that again made (SIGKILL) to end.
// The first death is the cause that is reported and gives the exit status.
//
// A rank has died if it ends with a status other than 0 or by a signal before
// it has finalized; if it ends with status 0 after it has joined and before it
// has finalized; or if it has ended in any way while others wait in a fence.
// A status other than 0 after finalize gives the job its status but ends nobody.

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/internal/pmi"
)

type job struct {
	cfg            *Config
	backend        backend
	server         *pmi.Server
	stdout, stderr *sink
	events         chan event
	done           chan struct{} // closed when the loop has ended

	ranks    []rankState
	pending  int // ranks that are not started yet
	living   int
	startErr error // why the job could not be started
	cause    *cause
	status   int // of the job, once a rank has failed
	killed   int // ranks that had to be killed

	starting    *startWatch
	ending      bool
	grace       grace
	ended       int         // ranks, since the first death
	survivors   int         // ranks that lived when the first one died
	learnt      int         // of these, when they were asked to end
	patience    *time.Timer // until the next step of ending, or the next look
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

// event is what a backend or a PMI client tells: one of these.
type event struct {
	rank    int
	started bool // with pid
	pid     int
	exited  bool // with end
	end     ending
	pmi     pmi.Event

	ready  bool   // the agent of host runs
	lost   string // host was lost, and why
	host   int
	failed error // the job cannot be started
}

func newJob(cfg *Config) *job {
	lock := new(sync.Mutex)
	j := &job{
		cfg:    cfg,
		stdout: &sink{lock: lock, w: cfg.Stdout},
		stderr: &sink{lock: lock, w: cfg.Stderr},
		events: make(chan event, 6*cfg.Ranks), // room for all that ranks do while others are being started
		done:   make(chan struct{}),
		ranks:  make([]rankState, cfg.Ranks),
	}
	j.pending = cfg.Ranks
	j.grace = grace{fixed: cfg.Grace, cores: thisMachine().usable()}
	j.starting = newStartWatch(cfg, time.Now())
	j.patience = time.NewTimer(time.Hour)
	j.patience.Stop()
	return j
}

// lines gives the taker of a rank's lines.
func (j *job) lines(rank int, isStderr bool) func(text []byte) {
	var label []byte
	if j.cfg.labelled() {
		label = rankLabel(rank, j.cfg.Ranks)
	}
	if isStderr {
		return j.stderr.labelled(label)
	}
	return j.stdout.labelled(label)
}

func (j *job) pmiEvent(e pmi.Event) {
	if e.Phase != pmi.PhaseFinalized {
		j.post(event{rank: e.Rank, pmi: e})
	}
}

func (j *job) post(e event) {
	select {
	case j.events <- e:
	case <-j.done:
	}
}

// loop runs the job until its last rank has ended.
func (j *job) loop(ctx context.Context) {
	defer close(j.done)
	watch := stuckWatch{after: j.cfg.StuckAfter}
	var look <-chan time.Time
	if _, ok := j.backend.pulse(); j.cfg.StuckAfter > 0 && ok {
		t := time.NewTicker(lookEvery(j.cfg.StuckAfter))
		defer t.Stop()
		look = t.C
	}
	late := j.starting.ticker()
	defer late.Stop()
	cancelled := ctx.Done()
	for j.living > 0 || j.pending > 0 {
		select {
		case e := <-j.events:
			j.take(e)
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
		case <-j.patience.C:
			j.patienceIsOver(time.Now())
		case now := <-late.C:
			j.lookForLateness(now)
		case now := <-look:
			if p, ok := j.backend.pulse(); ok {
				j.lookForWaits(&watch, p, now)
			}
		}
	}
}

// takeAll takes what has happened so far.
func (j *job) takeAll() {
	for {
		select {
		case e := <-j.events:
			j.take(e)
		default:
			return
		}
	}
}

func (j *job) take(e event) {
	switch {
	case e.started:
		r := &j.ranks[e.rank]
		r.started, r.alive, r.pid = true, true, e.pid
		j.living++
		j.pending = max(0, j.pending-1)
		j.starting.started(e.rank, time.Now())
	case e.exited:
		j.exited(e.rank, e.end)
	case e.ready:
		j.starting.ready(e.host, time.Now())
	case e.lost != "":
		j.hostLost(e.host, e.lost)
	case e.failed != nil:
		j.notStarted(e.failed)
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
	}
}

// checkFence: a fence can never be passed if a rank has gone already. The event
// may be old: what counts is that ranks wait in one now.
func (j *job) checkFence() {
	if j.server.Fenced() == 0 {
		return
	}
	for rank := range j.ranks {
		if r := &j.ranks[rank]; r.started && !r.alive {
			j.died(rank, "ended before a fence that other ranks wait in", r.end.String(), max(1, r.end.status()))
			return
		}
	}
}

// notStarted ends what has been started of a job that cannot be.
func (j *job) notStarted(err error) {
	j.pending = 0
	j.starting.over = true
	if j.startErr == nil {
		j.startErr = err
		j.endNow()
	}
}

// hostLost buries the ranks of a host that can no longer be heard.
func (j *job) hostLost(host int, why string) {
	b := j.cfg.blocks[host]
	text := fmt.Sprintf("host %s was lost, and with it %s: %s", j.cfg.Hosts[host].Name, rankRange(b), why)
	if j.pending > 0 {
		j.notStarted(fmt.Errorf("launch: %s", text))
	}
	var lost []int
	for rank := b.First; rank < b.First+b.Count; rank++ {
		r := &j.ranks[rank]
		if !r.alive {
			continue
		}
		r.alive, r.end = false, ending{err: fmt.Errorf("host %s was lost", j.cfg.Hosts[host].Name)}
		j.living--
		j.ended++
		lost = append(lost, rank)
	}
	if len(lost) > 0 {
		j.fail(-1, text, 1)
	}
	for _, rank := range lost {
		j.died(rank, text, j.ranks[rank].end.String(), 1)
	}
}

// lookForLateness ends a job that takes too long to start.
func (j *job) lookForLateness(now time.Time) {
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
	j.fail(-1, text, 1)
	j.endNow()
}

// exited judges the end of a process by how far its client was.
func (j *job) exited(rank int, end ending) {
	r := &j.ranks[rank]
	if !r.alive {
		return // buried with its host
	}
	r.alive, r.end = false, end
	j.living--
	j.ended++
	failed := end.status() != 0
	phase := j.server.Phase(rank)
	switch {
	case phase == pmi.PhaseAborted: // told when it asked for it
	case phase == pmi.PhaseFinalized:
		if failed && j.status == 0 && j.cause == nil {
			j.fail(rank, "after it had finished: "+end.explained(), end.status())
		}
	case failed:
		j.died(rank, end.explained(), end.String(), end.status())
	case phase == pmi.PhaseJoined:
		j.died(rank, "ended with status 0 without leaving the job: Finalize was not called", "ended without Finalize", 1)
	case j.server.Fenced() > 0:
		j.died(rank, "ended with status 0 without joining the job that others wait in", "ended without joining the job", 1)
	}
}

// died tells the others and begins the end of the job.
func (j *job) died(rank int, why, status string, code int) {
	j.backend.markDead(pmi.Death{Rank: rank, Host: j.backend.host(rank), Status: status})
	j.fail(rank, why, code)
	if !j.ending {
		j.ending = true
		j.ended, j.survivors = 0, j.living
		j.grace.begin(time.Now(), j.living)
		j.patience.Reset(graceLook)
	}
}

// patienceIsOver ends ranks, unless they are leaving by themselves. What they have done
// meanwhile is looked at first: they may have kept this process from its core too.
func (j *job) patienceIsOver(now time.Time) {
	if !j.asked && j.survivors > 0 {
		j.takeAll()
		if left := j.grace.left(now, j.living, j.ended+j.backend.learnt()); left > 0 {
			j.patience.Reset(min(left, graceLook))
			return
		}
	}
	j.endNow()
}

// fail keeps the first cause and its status.
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

// endNow takes the next step: it asks, later it kills.
func (j *job) endNow() {
	j.ending = true
	if !j.asked {
		j.asked = true
		j.learnt = j.backend.learnt()
		j.backend.signalAll(syscall.SIGTERM)
		j.patience.Reset(j.grace.quiet(j.living) / 2)
		return
	}
	if j.killed == 0 {
		j.killed = j.living
	}
	j.backend.signalAll(syscall.SIGKILL)
	j.patience.Reset(time.Second) // a process in the kernel's hands may need it again
}

// signal passes a signal on. The second SIGINT kills: the first may have been
// caught. SIGQUIT asks for the report, and only twice in a row is passed on,
// which lets Go programs print their stacks.
func (j *job) signal(sig syscall.Signal) {
	j.takeAll()
	if j.pending > 0 && (sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP) {
		j.pending = 0
		j.fail(-1, "the start was interrupted by "+unix.SignalName(sig), 128+int(sig))
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
			j.tellWaits(nil, func(bool) string { return "who waits for whom (again within 2 s: the ranks get SIGQUIT):" })
			return
		}
	case syscall.SIGTSTP:
		// Stop with the ranks; SIGCONT is passed on to them. It cannot be sent
		// from here: this thread may run on for a moment.
		j.backend.signalAll(syscall.SIGSTOP)
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return
	}
	j.passedOn = sig
	j.backend.signalAll(sig)
}

// sameKeystroke is how close two SIGINT come that are one: commands such as
// timeout send it to the launcher and then to its group.
const sameKeystroke = 100 * time.Millisecond

// lookForWaits reports if nothing has moved for long.
func (j *job) lookForWaits(watch *stuckWatch, p pulse, now time.Time) {
	still, step := watch.look(p, now)
	switch step {
	case stuckSoon:
		rows, _ := j.backend.rows()
		watch.earlier = &sample{rows, time.Now()}
	case stuckTell:
		computes := j.tellWaits(watch.earlier, func(computes bool) string {
			if computes {
				return fmt.Sprintf("for %s some ranks have waited while others compute; if that takes so long, nothing is wrong; who waits for whom:", seconds(still))
			}
			return fmt.Sprintf("nothing has moved for %s; who waits for whom:", seconds(still))
		})
		if computes {
			watch.patient()
		}
	}
}

// tellWaits prints the report. head gets whether some rank computes, which tellWaits returns.
func (j *job) tellWaits(earlier *sample, head func(computes bool) string) (computes bool) {
	ended := func(rank int) string {
		if r := &j.ranks[rank]; r.started && !r.alive {
			return r.end.String()
		}
		return ""
	}
	rows, silent := j.backend.rows()
	now := time.Now()
	away, own, computes := describeAwayRanks(rows, earlier, ended, j.backend.host, now)
	lines := []string{head(computes)}
	if len(rows) == 0 {
		lines = append(lines, "  not known: this system has no board")
	}
	for _, l := range append(describeWaits(rows, own, ended, now), away...) {
		lines = append(lines, "  "+l)
	}
	if len(silent) > 0 {
		lines = append(lines, "  no answer from "+shortList(silent)+": what is said of the ranks there may be wrong")
	}
	j.say(lines...)
	return computes
}

// report tells the cause, as the last lines of all output, where people look.
func (j *job) report() {
	if j.cause == nil {
		return
	}
	lines := []string{j.causeText()}
	if j.killed > 0 {
		lines = append(lines, fmt.Sprintf("ranks that did not end by themselves and were killed: %d of %d", j.killed, j.cfg.Ranks))
	}
	if j.asked && j.survivors > 0 && j.learnt < j.survivors && j.server.Passed() > 0 {
		lines = append(lines, fmt.Sprintf("%d of the %d other ranks had learnt of it when they were asked to end; --grace gives them more time", j.learnt, j.survivors))
	}
	j.say(lines...)
}

func (j *job) causeText() string {
	c := j.cause
	if c.rank < 0 {
		return c.text
	}
	r := &j.ranks[c.rank]
	if r.end.signal != 0 && r.end.signal == j.passedOn {
		return "the job was ended by " + unix.SignalName(j.passedOn)
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

// say writes lines of the launcher itself.
func (j *job) say(lines ...string) {
	if j.cfg.Quiet {
		return
	}
	var text []byte
	for _, l := range lines {
		text = append(append(text, l...), '\n')
	}
	j.stderr.write([]byte("muster: "), text)
}
