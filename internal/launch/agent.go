package launch

// The agent, which `muster agent` runs on each host. It receives frames from its parent
// (the launcher or another agent) on stdin and answers on stdout. It starts the agents of
// its share of hosts, forwards frames between them and its parent, and runs the crew of
// its own host.
//
//	Agent      the greeting lines, the assignment, then frames until the input ends
//	fromAbove  handles a frame from the parent: for all hosts, this one, or one below
//	fromBelow  handles a frame of an agent started from here
//	finish     ends the ranks after the input has ended
//
// agent_job.go manages the ranks.

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

type agent struct {
	key      string
	up       *link
	forker   *forker
	assign   assignment
	branches []*branch

	reports *reporter
	out     *window        // output in transit to the launcher
	stdin   *inbox[[]byte] // for rank 0
	stopped chan struct{}  // closed when the agent ends

	heard, busy, paused atomic.Bool // see watchParent

	mu      sync.Mutex
	spec    jobSpec
	block   []int // the ranks of this host
	server  *pmi.Server
	crew    *crew
	exited  int // ranks
	gets    lookups
	copies  copies // of programs
	fetched string // the file that rank 0 writes; "": none
}

// helloTimeout limits how long an agent waits for the launcher's first line.
const helloTimeout = time.Minute

// Agent runs an agent on the given input and output. It returns when the job, or the
// connection to the parent, has ended.
func Agent(in, out *os.File) error {
	// A closed connection must be an error of Write, not a signal, and the agent ends
	// with its input, not with a terminal. The signals are handled instead of ignored,
	// because ranks would inherit ignored signals.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGPIPE, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	if isTerminal(in.Fd()) {
		return errors.New("an agent is started by muster run and cannot be used from a terminal")
	}
	r := bufio.NewReaderSize(in, 64<<10)
	type hello struct {
		key string
		err error
	}
	greeted := make(chan hello, 1)
	go func() {
		key, err := readJobLine(r)
		greeted <- hello{key, err}
	}()
	var first hello
	select {
	case first = <-greeted:
	case <-time.After(helloTimeout):
		first.err = fmt.Errorf("no data from muster run for %s", seconds(helloTimeout))
	}
	if first.err != nil {
		return first.err
	}
	a := &agent{
		key: first.key, up: newLink(r, out, "\n"+greeting(agentLine, first.key)), forker: newForker(),
		out: newWindow(), stdin: newInbox[[]byte](), stopped: make(chan struct{}),
	}
	a.reports = &reporter{send: func(body []byte) { a.sendUp(frameReport, body) }}
	ended, silent := make(chan error, 1), make(chan string, 1)
	go func() { ended <- a.listen(func(why string) { silent <- why }) }()
	var err error
	for waiting := true; waiting; {
		select {
		case err = <-ended:
			waiting = false
		case why := <-silent:
			a.leave(why)
			err, waiting = errors.New(why), false
		case sig := <-signals:
			waiting = sig != syscall.SIGTERM
		}
	}
	a.finish()
	return err
}

// listen handles frames from the parent until the input ends, which ends the job. silent is
// called if none come any more.
func (a *agent) listen(silent func(why string)) error {
	f, err := a.up.receive()
	if err != nil {
		return nil
	}
	if f.kind != frameAssign || json.Unmarshal(f.body, &a.assign) != nil || a.assign.Width < 1 || a.assign.Ping <= 0 {
		return fmt.Errorf("the launcher sent no valid assignment: its first frame is of kind %d", f.kind)
	}
	a.reports.hosts = 1 + len(a.assign.Share)
	a.reports.add(func(r *report) { r.ready.add(span{int(a.self()), int(a.self())}) })
	for _, part := range shares(a.assign.Share, a.assign.Width) {
		below := a.assign
		below.Host, below.Share = part[0], part[1:]
		a.mu.Lock()
		a.branches = append(a.branches, startBranch(a, a.forker, a.key, below, false))
		a.mu.Unlock()
	}
	go a.watchParent(silent)
	for {
		f, err := a.up.receive()
		if err != nil {
			return nil
		}
		a.heard.Store(true)
		a.busy.Store(true)
		if err := a.fromAbove(f); err != nil {
			return fmt.Errorf("frame of kind %d from the launcher: %w", f.kind, err)
		}
		a.busy.Store(false)
	}
}

func (a *agent) self() uint32 { return uint32(a.assign.Host.Index) }

func (a *agent) sendUp(kind frameKind, body []byte) { a.up.send(frame{kind, a.self(), body}) }

func (a *agent) all() []*branch {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.branches
}

// fromAbove forwards a frame to the agents below and handles it if it is for this host.
func (a *agent) fromAbove(f frame) error {
	switch f.kind {
	case frameBlock:
		ranks, err := readBlock(f.body)
		if err != nil {
			return err
		}
		a.reports.expect(ranks.count())
		if f.host == a.self() {
			a.block = ranks.list()
		}
	case frameJob:
		// Agents below may request values as soon as they have the job.
		if err := a.prepare(f.body); err != nil {
			return err
		}
	}
	for _, br := range a.all() {
		if f.host == everyHost || br.reaches(f.host) {
			br.send(f)
		}
	}
	if f.host != everyHost && f.host != a.self() {
		return nil
	}
	return a.handle(f)
}

// handle handles a frame for this host.
func (a *agent) handle(f frame) error {
	switch f.kind {
	case frameJob:
		if err := a.startRanks(); err != nil {
			a.sendUp(frameRefused, []byte(err.Error()))
		}
	case frameSignal:
		if sig := readSignal(f.body); sig != 0 && a.crew != nil {
			a.paused.Store(sig == sigStop)
			a.crew.signalAll(sig)
		}
	case frameDeath:
		return a.markDead(f.body)
	case frameRelease:
		if a.server != nil {
			a.server.Release()
		}
	case frameAnswer:
		return a.gets.answer(f.body)
	case frameFetch:
		return a.sendValue(f.body)
	case frameStdin:
		a.stdin.put(f.body)
	case frameOutputOK:
		n, err := readCount(f.body)
		a.out.acknowledge(int(n))
		return err
	case frameAskRows:
		return a.sendRows(f.body)
	case framePing:
		a.sendUp(framePong, nil)
	case frameProgram:
		return a.addProgram(f.body)
	}
	return nil
}

// markDead marks ranks of another host, or of this one, as failed on the board.
func (a *agent) markDead(body []byte) error {
	ranks, host, status, err := readDeath(body)
	if err == nil && a.crew != nil {
		a.crew.markDead(ranks, host, status)
		a.crew.evict(ranks, a.spec.Grace)
	}
	return err
}

// sendValue answers the launcher's request for a value that only this agent keeps.
func (a *agent) sendValue(body []byte) error {
	number, key, err := readGet(body)
	if err == nil && a.server != nil {
		value, ok := a.server.StoredValue(key)
		a.sendUp(frameFetched, answerBody(number, value, ok))
	}
	return err
}

// sendRows answers what the ranks of this host do.
func (a *agent) sendRows(body []byte) error {
	number, threads, err := readAskRows(body)
	if err != nil {
		return err
	}
	var rows []rankRow
	if a.crew != nil {
		rows = a.crew.states(threads)
	}
	a.sendUp(frameRows, rowsBody(number, rows, time.Now().UnixNano()))
	return nil
}

// addProgram adds a piece of a copied program, once the agents below have theirs.
func (a *agent) addProgram(body []byte) error {
	index, name, piece, err := readProgram(body)
	if err != nil {
		return err
	}
	for end := time.Now().Add(copyTimeout); !flushAll(a.all(), a.assign.Ping) && time.Now().Before(end); {
		a.sendUp(framePong, nil) // it handles no pings meanwhile
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.copies.add(index, name, piece)
	return nil
}

// fromBelow forwards a frame of an agent below to the parent. It also adds reports to its
// own, stores values, and answers requests for values itself if it can.
func (a *agent) fromBelow(br *branch, f frame) {
	switch f.kind {
	case frameGet:
		number, key, err := readGet(f.body)
		if server := a.theServer(); err == nil && server != nil {
			server.Lookup(key, func(value string, ok bool) {
				br.send(frame{frameAnswer, f.host, answerBody(number, value, ok)})
			})
		}
		return
	case frameReport:
		if r, err := readReport(f.body, maxRanks, maxHosts); err == nil {
			a.reports.add(func(held *report) { held.merge(r) })
			return
		}
	case frameEvent:
		if e, err := readEvent(f.body); err == nil && a.joinedAsOthers(e) {
			return
		}
		a.reports.flush()
	case frameExited, frameLost:
		a.reports.flush() // what the report says about these ranks comes first
	case frameValues:
		if values, err := readValues(f.body); err == nil {
			a.theServer().Merge(values)
		}
	}
	a.up.send(f)
}

func (a *agent) theServer() *pmi.Server {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.server
}

// branchEnded reports the hosts that are lost with an agent.
func (a *agent) branchEnded(br *branch, why string) {
	for i, h := range br.hosts() {
		text := why
		if i > 0 {
			text = fmt.Sprintf("it was reached through %s, which was lost", br.assign.Host.Name)
		}
		a.up.send(frame{frameLost, uint32(h.Index), []byte(text)})
	}
}

// finish ends the agents below, by closing their input, and the ranks, by SIGTERM and
// then SIGKILL.
func (a *agent) finish() {
	for _, br := range a.all() {
		br.close()
	}
	close(a.stopped)
	a.out.close()
	a.stdin.close()
	a.mu.Lock()
	crew, grace := a.crew, a.spec.Grace
	a.mu.Unlock()
	if crew != nil {
		crew.signalAll(syscall.SIGTERM)
		for end := time.Now().Add(grace / 2); crew.living() > 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		for end := time.Now().Add(time.Second); crew.living() > 0 && time.Now().Before(end); {
			crew.signalAll(syscall.SIGKILL)
			time.Sleep(5 * time.Millisecond)
		}
	}
	a.mu.Lock()
	a.copies.remove()
	a.mu.Unlock()
	a.removeFetched()
	a.reports.close()
	a.up.close()
	until := time.Now().Add(closeTimeout)
	for _, br := range a.all() {
		br.awaitClosed(until)
	}
}
