package launch

// A branch is an agent that was started from here, with all hosts that are reached
// through it. The launcher and every agent that has a share of hosts own some.
//
//	startBranch    run: the remote shell, the two lines, the assignment
//	read           frames from below go to the owner, one after the other
//	ended          the shell has ended: why, in a sentence

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// assignment is the body of frameAssign: which host an agent is, and what it needs
// to start others.
type assignment struct {
	Host      hostRef
	Share     []hostRef // the hosts that it starts
	RSH       []string
	AgentPath string
	Width     int
	Ping      time.Duration
	RetryFor  time.Duration
}

// branchOwner takes what comes from below, from the goroutine of the branch.
type branchOwner interface {
	fromBelow(b *branch, f frame)
	// branchEnded is called once, with a sentence, unless the end was asked for.
	branchEnded(b *branch, why string)
}

type branch struct {
	owner  branchOwner
	forker *forker
	key    string
	assign assignment
	words  []string

	mu      sync.Mutex
	link    *link
	process *os.Process
	closing bool
	quit    chan struct{} // closed with closing
	spoke   bool          // the agent has answered
	reason  string
	heard   atomic.Bool
	ended   chan struct{}
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

// hosts are all that are reached through the branch, its own first.
func (b *branch) hosts() []hostRef { return append([]hostRef{b.assign.Host}, b.assign.Share...) }

func (b *branch) reaches(host uint32) bool {
	for _, h := range b.hosts() {
		if h.Index == int(host) {
			return true
		}
	}
	return false
}

func (b *branch) send(f frame) {
	b.mu.Lock()
	l := b.link
	b.mu.Unlock()
	if l != nil {
		l.send(f)
	}
}

func (b *branch) flush(patience time.Duration) {
	b.mu.Lock()
	l := b.link
	b.mu.Unlock()
	if l != nil {
		l.flush(patience)
	}
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

func (b *branch) hasSpoken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spoke
}

// attempt runs the shell until it ends. It reports why that was and whether another
// attempt makes sense.
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
		return fmt.Sprintf("%s cannot be started: %v; --rsh names another command", b.shell(), err), false
	}
	defer out.Close()
	defer errs.Close()
	last := listen(errs)
	body, err := json.Marshal(b.assign)
	if err != nil {
		return err.Error(), false
	}
	l := newLink(bufio.NewReaderSize(out, 64<<10), in, greeting(jobLine, b.key))
	l.send(frame{frameAssign, uint32(b.assign.Host.Index), body})
	b.mu.Lock()
	b.link, b.process = l, cmd.Process
	closing := b.closing
	b.mu.Unlock()
	if closing {
		b.close() // it was meant for this attempt too
	}

	// What a shell has left behind may hold its output open: its own end counts.
	finished := make(chan ending, 1)
	go func() {
		end := (&localProcess{cmd.Process}).wait()
		out.(*os.File).SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		finished <- end
	}()
	noise, readErr := b.read(l)
	l.close()
	if readErr != nil && !b.hasSpoken() && !errors.Is(readErr, errNoAgent) {
		b.kill() // whatever it is, it is no agent
	}
	end := b.awaitEnd(finished)
	words := last.words()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.process = nil
	return b.explain(end, noise, readErr, words), !b.spoke && end.code == 255
}

// awaitEnd waits for the shell after its output has ended; then it has no reason
// to live on.
func (b *branch) awaitEnd(finished chan ending) ending {
	select {
	case end := <-finished:
		return end
	case <-time.After(2 * time.Second):
		b.kill()
		return <-finished
	}
}

// read passes on frames until the connection ends.
func (b *branch) read(l *link) (noise []byte, err error) {
	if noise, err = awaitAgentLine(l.r, b.key); err != nil {
		return noise, err
	}
	b.mu.Lock()
	b.spoke = true
	b.mu.Unlock()
	quit := make(chan struct{})
	defer close(quit)
	go b.askForLife(l, quit)
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

// askForLife kills the connection to a host that no longer answers: a machine that
// lost its power closes nothing. It counts questions, not time: this process
// may have been stopped for a while.
func (b *branch) askForLife(l *link, quit chan struct{}) {
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
		if silent > silentPings {
			b.mu.Lock()
			b.reason = fmt.Sprintf("it has given no sign of life for %s", seconds(silentPings*b.assign.Ping))
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
		syscall.Kill(-b.process.Pid, syscall.SIGKILL)
	}
}

// close asks the agent to end, by the end of its input. Where none has answered yet
// the shell is all there is, and may hang.
func (b *branch) close() {
	b.mu.Lock()
	if !b.closing {
		b.closing = true
		close(b.quit)
	}
	if b.link != nil {
		b.link.close()
	}
	spoke := b.spoke
	b.mu.Unlock()
	if !spoke {
		b.kill()
	}
}

// awaitClosed waits for the end of a closed branch, and makes it end.
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

// explain says why the branch has ended. Called with the lock held.
func (b *branch) explain(end ending, noise []byte, readErr error, last string) string {
	if last != "" {
		last = ": " + last
	}
	switch {
	case b.reason != "":
		return b.reason
	case b.spoke:
		if end.signal == 0 && end.code == 0 && end.err == nil && !errors.Is(readErr, os.ErrDeadlineExceeded) {
			return fmt.Sprintf("its agent closed the connection (%v)%s", readErr, last)
		}
		return "its agent ended: " + end.explained() + last
	case !errors.Is(readErr, errNoAgent):
		return fmt.Sprintf("%s: %v%s%s", b.shell(), readErr, quoteNoise(noise), last)
	}
	advice := ""
	if end.code == 126 || end.code == 127 {
		advice = "; is muster installed there? --agent-path tells where it is on the hosts"
	}
	return fmt.Sprintf("%s ended before an agent spoke, %s%s%s%s", b.shell(), end, last, quoteNoise(noise), advice)
}

// quoteNoise shows the end of what was printed instead of what was expected.
func quoteNoise(noise []byte) string {
	noise = bytes.TrimSpace(noise)
	if len(noise) == 0 {
		return ""
	}
	const most = 200
	return fmt.Sprintf(" (it printed %q)", noise[max(0, len(noise)-most):])
}
