package launch

// A branch is an agent started from here, with all hosts that are reached through it. The
// launcher, and every agent with a share of hosts, own branches.
//
//	startBranch    starts the remote shell, exchanges the greetings, sends the assignment
//	read           passes frames from below to the owner, one after the other
//	explainLocked  describes in one sentence why the shell has ended

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// assignment is the body of frameAssign: the host of an agent, and the data it needs to
// start other agents.
type assignment struct {
	Host      hostRef
	Share     []hostRef // the hosts that it starts
	RSH       []string
	AgentPath string
	Width     int
	Ping      time.Duration
	RetryFor  time.Duration
}

// branchBuffer is the read buffer of a branch. Longer frames are read without it.
const branchBuffer = 8 << 10

// branchOwner handles frames from below, on the goroutine of the branch.
type branchOwner interface {
	fromBelow(b *branch, f frame)
	// branchEnded is called once with the reason, unless the branch was closed.
	branchEnded(b *branch, why string)
}

type branch struct {
	owner  branchOwner
	forker *forker
	key    string
	assign assignment
	words  []string

	mu       sync.Mutex
	link     *link
	process  *os.Process
	closing  bool
	quit     chan struct{} // closed with closing
	answered bool          // the agent has answered
	reason   string
	heard    atomic.Bool
	ended    chan struct{}
}

// startBranch starts an agent. direct means that its host is this machine.
func startBranch(owner branchOwner, forker *forker, key string, a assignment, direct bool) *branch {
	b := &branch{owner: owner, forker: forker, key: key, assign: a,
		quit: make(chan struct{}), ended: make(chan struct{})}
	b.words = []string{a.AgentPath, "agent"}
	if !direct {
		b.words = rshWords(a.RSH, a.Host.Name, b.words...)
	}
	go b.run()
	return b
}

// hosts returns all hosts reached through the branch, its own first.
func (b *branch) hosts() []hostRef { return append([]hostRef{b.assign.Host}, b.assign.Share...) }

// reaches reports whether a host is reached through the branch. Its share is in ascending
// order.
func (b *branch) reaches(host uint32) bool {
	_, found := slices.BinarySearchFunc(b.assign.Share, int(host), func(h hostRef, index int) int { return h.Index - index })
	return found || b.assign.Host.Index == int(host)
}

func (b *branch) send(f frame) {
	b.mu.Lock()
	l := b.link
	b.mu.Unlock()
	if l != nil {
		l.send(f)
	}
}

func (b *branch) flush(timeout time.Duration) bool {
	b.mu.Lock()
	l := b.link
	b.mu.Unlock()
	return l == nil || l.flush(timeout)
}

func (b *branch) run() {
	defer close(b.ended)
	giveUp := time.Now().Add(b.assign.RetryFor)
	why := ""
	for pause := 200 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		again := false
		why, again = b.attempt()
		if !again || b.isClosing() || time.Now().Add(pause).After(giveUp) {
			break
		}
		select {
		case <-time.After(pause):
		case <-b.quit:
		}
	}
	if !b.isClosing() {
		b.owner.branchEnded(b, why)
	}
}

func (b *branch) isClosing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closing
}

func (b *branch) hasAnswered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answered
}

// attempt runs the shell until it ends. It returns the reason and whether to try again.
func (b *branch) attempt() (why string, again bool) {
	cmd := exec.Command(b.words[0], b.words[1:]...)
	cmd.SysProcAttr = shellAttr()
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	errs, err3 := cmd.StderrPipe()
	err := errors.Join(err1, err2, err3)
	if err == nil {
		b.forker.do(func() { err = cmd.Start() })
	}
	if err != nil {
		return fmt.Sprintf("cannot start %s: %v; use --rsh for another command", b.shell(), err), false
	}
	defer out.Close()
	defer errs.Close()
	last := readExitReport(errs)
	body, err := json.Marshal(b.assign)
	if err != nil {
		return err.Error(), false
	}
	l := newLink(bufio.NewReaderSize(out, branchBuffer), in, greeting(jobLine, b.key))
	l.send(frame{frameAssign, uint32(b.assign.Host.Index), body})
	b.mu.Lock()
	b.link, b.process = l, cmd.Process
	closing := b.closing
	b.mu.Unlock()
	if closing {
		b.close() // this attempt started after close
	}

	// Child processes of the shell may hold its output open, so its own exit counts.
	finished := make(chan ending, 1)
	go func() {
		end := (&localProcess{cmd.Process}).wait()
		out.(*os.File).SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		finished <- end
	}()
	noise, readErr := b.read(l)
	l.close()
	if readErr != nil && !b.hasAnswered() && !errors.Is(readErr, errNoAgent) {
		b.kill() // the peer is not an agent
	}
	end := b.awaitEnd(finished, readErr)
	words := last.line()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.process = nil
	return b.explainLocked(end, noise, readErr, words), !b.answered && end.code == 255
}

// awaitEnd waits for the shell to exit after its output has ended, and kills it after
// two seconds. If an agent has answered, its host is lost, which the ranks must know within
// a second, and the shell has less to say.
func (b *branch) awaitEnd(finished chan ending, readErr error) ending {
	timeout := 2 * time.Second
	if b.hasAnswered() {
		timeout = 300 * time.Millisecond
	}
	select {
	case end := <-finished:
		return end
	case <-time.After(timeout):
	}
	b.mu.Lock()
	if b.answered && b.reason == "" {
		b.reason = fmt.Sprintf("its agent closed the connection (%v)", readErr)
	}
	b.mu.Unlock()
	b.kill()
	return <-finished
}

// read passes frames to the owner until the connection ends.
func (b *branch) read(l *link) (noise []byte, err error) {
	if noise, err = awaitAgentLine(l.r, b.key); err != nil {
		return noise, err
	}
	b.mu.Lock()
	b.answered = true
	b.mu.Unlock()
	quit := make(chan struct{})
	defer close(quit)
	go b.pingLoop(l, quit)
	for {
		f, err := l.receive()
		if err != nil {
			return nil, err
		}
		b.heard.Store(true)
		if f.kind != framePong {
			b.owner.fromBelow(b, f)
		}
	}
}

// pingLoop ends the connection to a host that no longer answers: a machine that lost
// power does not close its connections. It counts pings, not time, because this process
// may have been stopped for a while.
func (b *branch) pingLoop(l *link, quit chan struct{}) {
	t := time.NewTicker(b.assign.Ping)
	defer t.Stop()
	for silent := 0; ; {
		select {
		case <-quit:
			return
		case <-t.C:
		}
		if silent++; b.heard.Swap(false) {
			silent = 0
		}
		if silent > answerPings {
			b.mu.Lock()
			b.reason = fmt.Sprintf("it has not answered for %s", seconds(answerPings*b.assign.Ping))
			b.mu.Unlock()
			b.kill()
			return
		}
		l.send(frame{kind: framePing, host: uint32(b.assign.Host.Index)})
	}
}

func (b *branch) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process != nil {
		signalGroup(b.process.Pid, syscall.SIGKILL)
	}
}

// close makes the agent exit by closing its input. If no agent has answered yet, close
// kills the shell, which may hang.
func (b *branch) close() {
	b.mu.Lock()
	if !b.closing {
		b.closing = true
		close(b.quit)
	}
	if b.link != nil {
		b.link.close()
	}
	answered := b.answered
	b.mu.Unlock()
	if !answered {
		b.kill()
	}
}

// awaitClosed waits for the end of a closed branch and kills it at the given time.
func (b *branch) awaitClosed(until time.Time) {
	select {
	case <-b.ended:
		return
	case <-time.After(time.Until(until)):
	}
	b.kill()
	<-b.ended
}

func (b *branch) shell() string { return fmt.Sprintf("%.120q", strings.Join(b.words, " ")) }

// explainLocked returns why the branch has ended.
func (b *branch) explainLocked(end ending, noise []byte, readErr error, last string) string {
	if last != "" {
		last = ": " + last
	}
	switch {
	case b.reason != "":
		return b.reason
	case b.answered:
		if end.signal == 0 && end.code == 0 && end.err == nil && !errors.Is(readErr, os.ErrDeadlineExceeded) {
			return fmt.Sprintf("its agent closed the connection (%v)%s", readErr, last)
		}
		return "its agent ended: " + end.explain() + last
	case !errors.Is(readErr, errNoAgent):
		return fmt.Sprintf("%s: %v%s%s", b.shell(), readErr, quoteNoise(noise), last)
	}
	advice := ""
	if end.code == 126 || end.code == 127 {
		advice = "; is muster installed there? Set its path on the hosts with --agent-path"
	}
	return fmt.Sprintf("%s ended before an agent answered, %s%s%s%s", b.shell(), end, last, quoteNoise(noise), advice)
}

// quoteNoise quotes the end of unexpected output.
func quoteNoise(noise []byte) string {
	noise = bytes.TrimSpace(noise)
	if len(noise) == 0 {
		return ""
	}
	const most = 200
	return fmt.Sprintf(" (it printed %q)", noise[max(0, len(noise)-most):])
}
