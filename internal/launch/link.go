package launch

// A link moves frames between two neighbors in the tree, over the stdin and
// stdout of an agent. Sending never blocks: frames are queued, and one goroutine
// writes them, many at a time. What could fill the queue, output and input, is
// held back by windows (flow.go).
//
// Before the frames each side says one line of text:
//
//	to the agent      muster-job VERSION KEY
//	from the agent    muster-agent VERSION KEY
//
// The second may come after whatever a login shell prints. That the agent repeats
// the key shows that it has read the first line and is nobody else.

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
	closing bool          // no more frames come; close w when all are written
	ended   chan struct{} // closed when the writer has ended
}

// newLink takes over a connection and says the line of this side.
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

// write is the goroutine that writes. After an error it only throws away: the
// reader will see the end of the connection too and tell.
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

// flush waits until all is written, but not for ever.
func (l *link) flush(patience time.Duration) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		l.mu.Lock()
		empty := len(l.queue) == 0 && !l.writing
		l.mu.Unlock()
		if empty {
			return
		}
	}
}

// close ends the connection after what is queued.
func (l *link) close() {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.wake.Broadcast()
}

// The two lines.

const (
	jobLine   = "muster-job "
	agentLine = "muster-agent "
	// maxNoise is how much a login shell may say before the agent speaks.
	maxNoise = 64 << 10
	// maxJobLine bounds what an agent reads of a stranger.
	maxJobLine = 256
)

func greeting(line, key string) string {
	return line + strconv.Itoa(protocolVersion) + " " + key + "\n"
}

// readJobLine is the agent's: it gives the key.
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
		return "", fmt.Errorf("the launcher speaks version %s of the agents' protocol and this muster version %d: install the same muster on all hosts", version, protocolVersion)
	}
	return key, nil
}

// errNoAgent says that the connection ended before an agent spoke.
var errNoAgent = errors.New("no agent answered")

// awaitAgentLine reads what a login shell prints, up to the line of the agent. It
// returns the noise.
func awaitAgentLine(r *bufio.Reader, key string) (noise []byte, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil // a long line of noise
		}
		if rest, ok := bytes.CutPrefix(line, []byte(agentLine)); ok && err == nil {
			version, theirs, _ := strings.Cut(strings.TrimSpace(string(rest)), " ")
			switch {
			case version != strconv.Itoa(protocolVersion):
				return noise, fmt.Errorf("the agent speaks version %s of the agents' protocol and this muster version %d: install the same muster on all hosts, or name the right one with --agent-path", version, protocolVersion)
			case theirs != key:
				return noise, errors.New("the agent answered with the key of another job: something on the way mixes up connections")
			}
			return noise, nil
		}
		noise = append(noise, line...)
		if len(noise) > maxNoise {
			return noise, fmt.Errorf("%d bytes came and no agent spoke: the login shell there must not print so much", len(noise))
		}
		if err != nil {
			return noise, errNoAgent
		}
	}
}
