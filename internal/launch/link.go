package launch

// A link carries frames between two neighbors in the tree, over the stdin and stdout of
// an agent. Sending never blocks: frames are queued, and one goroutine writes them, many
// at a time. Windows (flow.go) limit the output and input in the queue.
//
// Before the frames each side sends one line of text:
//
//	to the agent      muster-job VERSION KEY
//	from the agent    muster-agent VERSION KEY
//
// Output of a login shell may precede the second line. The repeated key shows that the
// line comes from the agent of this job.

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

type link struct {
	r *bufio.Reader
	w io.WriteCloser

	mu      sync.Mutex
	wake    sync.Cond
	queue   []byte
	writing bool
	closing bool          // no more frames follow; close w when all are written
	ended   chan struct{} // closed when the writer has ended
}

// newLink takes over a connection and sends the greeting of this side.
func newLink(r *bufio.Reader, w io.WriteCloser, line string) *link {
	l := &link{r: r, w: w, queue: []byte(line), ended: make(chan struct{})}
	l.wake.L = &l.mu
	go l.write()
	return l
}

func (l *link) receive() (frame, error) { return readFrame(l.r) }

func (l *link) send(f frame) {
	l.mu.Lock()
	if !l.closing {
		l.queue = appendFrame(l.queue, f)
	}
	l.mu.Unlock()
	l.wake.Broadcast()
}

// write is the writing goroutine. After an error it discards frames: the reader also sees
// the end of the connection and reports it.
func (l *link) write() {
	defer close(l.ended)
	defer l.w.Close()
	var failed error
	var spare []byte
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(l.queue) == 0 && !l.closing {
			l.wake.Wait()
		}
		if len(l.queue) == 0 {
			return
		}
		out := l.queue
		l.queue, l.writing = spare[:0], true
		l.mu.Unlock()
		if failed == nil {
			_, failed = l.w.Write(out)
		}
		l.mu.Lock()
		l.writing = false
		if spare = out; cap(spare) > 1<<20 {
			spare = nil
		}
		l.wake.Broadcast()
	}
}

// flush waits until all frames are written, or for the timeout. It reports whether they are.
func (l *link) flush(timeout time.Duration) bool {
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		l.mu.Lock()
		empty := len(l.queue) == 0 && !l.writing
		l.mu.Unlock()
		if empty {
			return true
		}
	}
	return false
}

// close ends the connection after the queued frames.
func (l *link) close() {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.wake.Broadcast()
}

// The greetings.

const (
	jobLine   = "muster-job "
	agentLine = "muster-agent "
	// maxNoise limits the output of a login shell before the greeting of the agent.
	maxNoise = 64 << 10
	// maxJobLine limits the first line that an agent reads.
	maxJobLine = 256
)

func greeting(line, key string) string {
	return line + strconv.Itoa(protocolVersion) + " " + key + "\n"
}

// readJobLine reads the launcher's greeting and returns the key.
func readJobLine(r *bufio.Reader) (key string, err error) {
	const started = "an agent is started by muster run, which first sends the key of its job"
	var line []byte
	for len(line) == 0 || line[len(line)-1] != '\n' {
		c, err := r.ReadByte()
		if err != nil || len(line) >= maxJobLine {
			return "", fmt.Errorf("%s; got %.60q instead", started, line)
		}
		line = append(line, c)
	}
	rest, ok := strings.CutPrefix(string(line), jobLine)
	version, key, both := strings.Cut(strings.TrimSpace(rest), " ")
	if !ok || !both || key == "" {
		return "", fmt.Errorf("%s; got %.60q instead", started, line)
	}
	if version != strconv.Itoa(protocolVersion) {
		return "", fmt.Errorf("the launcher uses version %s of the agent protocol and this muster version %d: install the same muster on all hosts", version, protocolVersion)
	}
	return key, nil
}

// errNoAgent reports that the connection ended before the greeting of an agent.
var errNoAgent = errors.New("no agent answered")

// awaitAgentLine reads up to the greeting of the agent. It returns the output of a login
// shell before it.
func awaitAgentLine(r *bufio.Reader, key string) (noise []byte, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil // a long line of other output
		}
		if rest, ok := bytes.CutPrefix(line, []byte(agentLine)); ok && err == nil {
			version, theirs, _ := strings.Cut(strings.TrimSpace(string(rest)), " ")
			switch {
			case version != strconv.Itoa(protocolVersion):
				return noise, fmt.Errorf("the agent uses version %s of the agent protocol and this muster version %d: install the same muster on all hosts, or set the path of the right one with --agent-path", version, protocolVersion)
			case theirs != key:
				return noise, errors.New("the agent answered with the key of another job: check the --rsh command, which mixes up connections")
			}
			return noise, nil
		}
		noise = append(noise, line...)
		if len(noise) > maxNoise {
			return noise, fmt.Errorf("no agent answered within %d bytes of other output: the login shell there prints too much", len(noise))
		}
		if err != nil {
			return noise, errNoAgent
		}
	}
}
