package launch

// The agent: what `muster agent` does on each host. It takes frames from above on
// its stdin and answers on its stdout, starts the agents of its share of hosts,
// passes frames on between them and those above, and keeps a crew of its own.
//
//	Agent      the lines, the assignment, then frames until the input ends
//	down       a frame from above: for everybody, for this host, for one below
//	fromBelow  a frame of an agent that was started from here
//	finish     the input has ended: so do the ranks
//
// agent_job.go has what it does with its ranks.

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
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

	out     *window        // output that is on its way up
	stdin   *inbox[[]byte] // for rank 0
	stopped chan struct{}  // closed when the agent ends

	mu      sync.Mutex
	spec    jobSpec
	server  *pmi.Server
	crew    *crew
	exited  int // ranks
	gets    map[int64]func(value string, ok bool)
	lastGet int64
}

// helloPatience is how long an agent waits for the launcher's first line.
const helloPatience = time.Minute

// Agent runs an agent that was started with this input and output. It returns when
// the job has ended, or the connection to whoever started it.
func Agent(in, out *os.File) error {
	// A connection that is gone is an error of Write, not a signal; and the
	// agent ends with its input, not with a terminal. The signals are caught
	// rather than ignored, since ranks would inherit that.
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGPIPE, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(caught)
	if isTerminal(in.Fd()) {
		return errors.New("an agent is started by muster run, which talks to it; there is nothing to type")
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
	case <-time.After(helloPatience):
		first.err = fmt.Errorf("muster run has sent nothing for %s", seconds(helloPatience))
	}
	if first.err != nil {
		return first.err
	}
	a := &agent{
		key: first.key, up: newLink(r, out, "\n"+greeting(agentLine, first.key)), forker: newForker(),
		out: newWindow(), stdin: newInbox[[]byte](), stopped: make(chan struct{}),
		gets: map[int64]func(string, bool){},
	}
	ended := make(chan error, 1)
	go func() { ended <- a.listen() }()
	var err error
	for waiting := true; waiting; {
		select {
		case err = <-ended:
			waiting = false
		case sig := <-caught:
			waiting = sig != syscall.SIGTERM
		}
	}
	a.finish()
	return err
}

// listen takes frames from above until they end, which is how a job ends.
func (a *agent) listen() error {
	f, err := a.up.receive()
	if err != nil {
		return nil
	}
	if f.kind != frameAssign || json.Unmarshal(f.body, &a.assign) != nil || a.assign.Width < 1 || a.assign.Ping <= 0 {
		return fmt.Errorf("the launcher did not say which host this is: its first frame is of kind %d", f.kind)
	}
	a.up.send(frame{kind: frameReady, host: a.self()})
	for _, part := range shares(a.assign.Share, a.assign.Width) {
		below := a.assign
		below.Host, below.Share = part[0], part[1:]
		a.mu.Lock()
		a.branches = append(a.branches, startBranch(a, a.forker, a.key, below, false))
		a.mu.Unlock()
	}
	for {
		f, err := a.up.receive()
		if err != nil {
			return nil
		}
		if err := a.down(f); err != nil {
			return fmt.Errorf("a frame of kind %d from the launcher: %w", f.kind, err)
		}
	}
}

func (a *agent) self() uint32 { return uint32(a.assign.Host.Index) }

func (a *agent) tell(kind frameKind, body []byte) { a.up.send(frame{kind, a.self(), body}) }

func (a *agent) all() []*branch {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.branches
}

// down passes a frame on and takes what is for this host.
func (a *agent) down(f frame) error {
	if f.kind == frameJob {
		// Agents below may ask for values as soon as they have it.
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
	switch f.kind {
	case frameJob:
		if err := a.startRanks(); err != nil {
			a.tell(frameRefused, []byte(err.Error()))
		}
	case frameSignal:
		if sig := readSignal(f.body); sig != 0 && a.crew != nil {
			a.crew.signalAll(sig)
		}
	case frameDeath:
		d, err := readDeath(f.body)
		if err != nil {
			return err
		}
		if a.crew != nil {
			a.crew.board.MarkDead(d)
		}
	case frameRelease:
		if a.server != nil {
			a.server.Release()
		}
	case frameAnswer:
		return a.answered(f.body)
	case frameStdin:
		a.stdin.put(f.body)
	case frameOutputOK:
		var n int64
		if err := readNumbers(f.body, &n); err != nil {
			return err
		}
		a.out.arrived(int(n))
	case frameAskRows:
		var number int64
		if err := readNumbers(f.body, &number); err != nil {
			return err
		}
		var rows []rankRow
		if a.crew != nil {
			rows = a.crew.states()
		}
		a.tell(frameRows, rowsBody(number, rows, time.Now().UnixNano()))
	case framePing:
		a.tell(framePong, nil)
	}
	return nil
}

// fromBelow passes on what an agent says that was started from here. Values it keeps
// too, and requests for values it answers itself if it can.
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

// branchEnded tells of the hosts that are lost with an agent.
func (a *agent) branchEnded(br *branch, why string) {
	for i, h := range br.hosts() {
		text := why
		if i > 0 {
			text = fmt.Sprintf("it was reached through %s, which was lost", br.assign.Host.Name)
		}
		a.up.send(frame{frameLost, uint32(h.Index), []byte(text)})
	}
}

// finish ends whatever runs: agents below by the end of their input, ranks as when
// a job is ended.
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
	a.up.close()
	until := time.Now().Add(closePatience)
	for _, br := range a.all() {
		br.awaitClosed(until)
	}
}
