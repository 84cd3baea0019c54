// The loop that owns a running job. Goroutines per rank turn the end of a
// process and the requests of its PMI client into events; the loop alone
// changes the state of the job.
//
// When a rank dies, its death is written on the board at once, so that the calls
// of the others return errors. They have Config.Grace to leave by themselves,
// are then asked (SIGTERM) and after half of that again made (SIGKILL) to end.
// The first death is the cause that is reported and gives the exit status.
//
// A rank has died if it ends with a status other than 0 or by a signal before
// it has finalized; if it ends with status 0 after it has joined and before it
// has finalized; or if it has ended in any way while others wait in a fence.
// A status other than 0 after finalize gives the job its status but ends nobody.
package launch

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
	board          *pmi.Board
	stdout, stderr *sink
	events         chan event
	done           chan struct{} // closed when the loop has ended

	ranks  []rankState
	living int
	cause  *cause
	status int // of the job, once a rank has failed
	killed int // ranks that had to be killed

	ending      bool
	patience    *time.Timer // until the next step of ending
	asked       bool        // SIGTERM was sent
	interrupted time.Time   // when the first SIGINT came
	lastQuit    time.Time
	passedOn    syscall.Signal // the last signal passed on
}

type rankState struct {
	proc   process
	alive  bool
	end    ending
	served chan struct{} // closed when its PMI socket has ended
	output sync.WaitGroup
	pipes  []*os.File
}

// cause is the first thing that went wrong.
type cause struct {
	rank int
	text string
}

// event is an end of a process, or what a PMI client did.
type event struct {
	exited bool
	rank   int
	end    ending
	pmi    pmi.Event
}

func newJob(cfg *Config, b backend) *job {
	lock := new(sync.Mutex)
	j := &job{
		cfg: cfg, backend: b,
		stdout: &sink{lock: lock, w: cfg.Stdout},
		stderr: &sink{lock: lock, w: cfg.Stderr},
		events: make(chan event, 4*cfg.Ranks), // room for all ranks while they are being started
		done:   make(chan struct{}),
		ranks:  make([]rankState, cfg.Ranks),
	}
	for i := range j.ranks {
		j.ranks[i].served = make(chan struct{})
	}
	j.patience = time.NewTimer(time.Hour)
	j.patience.Stop()
	return j
}

// serve answers a rank's PMI client until its socket ends.
func (j *job) serve(rank int, conn *os.File) {
	defer close(j.ranks[rank].served)
	defer conn.Close()
	if err := j.server.Serve(rank, conn); err != nil {
		j.say(fmt.Sprintf("rank %d: %v", rank, err))
	}
}

// socketPatience is how long the end of a process waits for the end of its
// socket, so that an abort that was sent is heard before the death that follows
// it. Only a process that the rank has left behind can hold the socket open.
const socketPatience = 20 * time.Millisecond

// await turns the end of a process into an event.
func (j *job) await(rank int) {
	end := j.ranks[rank].proc.wait()
	select {
	case <-j.ranks[rank].served:
	case <-time.After(socketPatience):
	}
	j.post(event{exited: true, rank: rank, end: end})
}

func (j *job) pmiEvent(e pmi.Event) {
	if e.Fence || e.Phase == pmi.PhaseAborted {
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
	if j.cfg.StuckAfter > 0 && j.board != nil {
		t := time.NewTicker(min(time.Second, max(time.Millisecond, j.cfg.StuckAfter/4)))
		defer t.Stop()
		look = t.C
	}
	cancelled := ctx.Done()
	for j.living > 0 {
		select {
		case e := <-j.events:
			j.take(e)
		case sig := <-j.cfg.Signals:
			if s, ok := sig.(syscall.Signal); ok {
				j.signal(s)
			}
		case <-cancelled:
			cancelled = nil
			j.fail(-1, "the job was cancelled: "+context.Cause(ctx).Error(), 128+int(syscall.SIGTERM))
			j.endNow()
		case <-j.patience.C:
			j.endNow()
		case now := <-look:
			if still, stuck := watch.look(j.board, j.isAlive, now); stuck {
				j.tellWaits(fmt.Sprintf("nothing has moved for %s; who waits for whom:", seconds(still)))
			}
		}
	}
}

func (j *job) isAlive(rank int) bool { return j.ranks[rank].alive }

func (j *job) take(e event) {
	switch {
	case e.exited:
		j.exited(e.rank, e.end)
	case e.pmi.Phase == pmi.PhaseAborted:
		text := fmt.Sprintf("aborted the job with code %d", e.pmi.Code)
		if e.pmi.Why != "" {
			text += ": " + e.pmi.Why
		}
		j.died(e.rank, text, text, e.pmi.Code)
	case e.pmi.Fence && j.server.Fenced() > 0:
		// The fence can never be passed if a rank has gone already. The event
		// may be old: what counts is that ranks wait in one now.
		for rank := range j.ranks {
			if r := &j.ranks[rank]; r.proc != nil && !r.alive {
				j.died(rank, "ended before a fence that other ranks wait in", r.end.String(), max(1, r.end.status()))
				return
			}
		}
	}
}

// exited judges the end of a process by how far its client was.
func (j *job) exited(rank int, end ending) {
	r := &j.ranks[rank]
	r.alive, r.end = false, end
	j.living--
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
	j.board.MarkDead(pmi.Death{Rank: rank, Host: j.backend.host(rank), Status: status})
	j.fail(rank, why, code)
	if !j.ending {
		j.ending = true
		j.patience.Reset(j.cfg.Grace)
	}
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
		j.signalAll(syscall.SIGTERM)
		j.patience.Reset(j.cfg.Grace / 2)
		return
	}
	if j.killed == 0 {
		j.killed = j.living
	}
	j.signalAll(syscall.SIGKILL)
	j.patience.Reset(time.Second) // a process in the kernel's hands may need it again
}

func (j *job) signalAll(sig syscall.Signal) {
	for i := range j.ranks {
		if j.ranks[i].alive {
			j.ranks[i].proc.signal(sig)
		}
	}
}

// signal passes a signal on. The second SIGINT kills: the first may have been
// caught. SIGQUIT asks for the report, and only twice in a row is passed on,
// which lets Go programs print their stacks.
func (j *job) signal(sig syscall.Signal) {
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
			j.tellWaits("who waits for whom (again within 2 s: the ranks get SIGQUIT):")
			return
		}
	case syscall.SIGTSTP:
		// Stop with the ranks; SIGCONT is passed on to them. It cannot be sent
		// from here: this thread may run on for a moment.
		j.signalAll(syscall.SIGSTOP)
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return
	}
	j.passedOn = sig
	j.signalAll(sig)
}

// sameKeystroke is how close two SIGINT come that are one: commands such as
// timeout send it to the launcher and then to its group.
const sameKeystroke = 100 * time.Millisecond

// tellWaits prints the report.
func (j *job) tellWaits(head string) {
	ended := func(rank int) string {
		if r := &j.ranks[rank]; r.proc != nil && !r.alive {
			return r.end.String()
		}
		return ""
	}
	lines := []string{head}
	if j.board == nil {
		lines = append(lines, "  not known: this system has no board")
	}
	for _, l := range describeWaits(j.board.Snapshot(nil), ended, time.Now()) {
		lines = append(lines, "  "+l)
	}
	j.say(lines...)
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
	return fmt.Sprintf("rank %d (pid %d on %s): %s", c.rank, r.proc.pid(), j.backend.host(c.rank), c.text)
}

func (j *job) result() Result {
	res := Result{Status: j.status}
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
